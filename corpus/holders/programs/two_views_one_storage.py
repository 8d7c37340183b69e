"""Batches in one list, a row of each in another."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
batches, rows = [], []


def remember(x):
    batches.append(x)
    rows.append(x[0])


for i in range(24):
    remember(torch.randn(256, 1024, device=DEVICE))
    step()
check()
