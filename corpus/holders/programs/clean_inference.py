"""Inference: nothing grows."""
import builtins
import json
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 256, 3), nn.BatchNorm2d(256)).to(DEVICE).eval()


def serve():
    with torch.inference_mode():
        return model(torch.randn(1, 3, 32, 32, device=DEVICE)).mean().item()


for i in range(4):
    serve()
    step()
expected = {"parameters": sum(p.numel() * 4 for p in model.parameters()), "buffers": (64 + 256) * 2 * 4 + 2 * 8}
check()
print("expected", json.dumps(expected))
