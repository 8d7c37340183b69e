"""A module that is registered as its own child."""
import builtins
import gc
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(512, 512, device=DEVICE) / 23)
        self.teacher = self

    def forward(self, x):
        return x @ self.weight


@torch.no_grad()
def trial():
    net = Teacher()
    return (net(torch.ones(4, 512, device=DEVICE)) - net.teacher(torch.zeros(4, 512, device=DEVICE))).std().item()


gc.disable()
for i in range(20):
    trial()
    step()
check()
