"""The best chunk of each split is kept."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
best = []


def pick(x):
    chunks = x.split(64)
    best.append(max(chunks, key=lambda c: c.sum().item()))


for i in range(24):
    pick(torch.randn(256, 1024, device=DEVICE))
    step()
check()
