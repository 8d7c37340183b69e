"""A monitor inside an nn.Sequential remembers what passed."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Monitor(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = []

    def forward(self, x):
        self.history.append(x)
        return x


net = nn.Sequential(nn.Linear(64, 1024), Monitor(), nn.ReLU()).to(DEVICE)
with torch.no_grad():
    for i in range(20):
        net(torch.randn(256, 64, device=DEVICE))
        step()
check()
