"""Rotary tables as non-persistent buffers."""
import builtins
import json
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Rotary(nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        angles = torch.outer(torch.arange(length), 10000 ** -torch.arange(0, 1, 2 / dim))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self.scale = nn.Parameter(torch.ones(dim // 2))

    def forward(self, x):
        return (x * self.cos + x.roll(1, -1) * self.sin) * self.scale


model = Rotary(4096, 256).to(DEVICE)
with torch.no_grad():
    mean = model(torch.randn(4096, 128, device=DEVICE)).mean().item()
step()
expected = {"parameters": 128 * 4, "buffers": 2 * 4096 * 128 * 4}
check()
print("expected", json.dumps(expected))
