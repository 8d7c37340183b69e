"""Pairs of prediction and target for a metric."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
pairs = []
for i in range(24):
    pairs.append((torch.randn(128, 1024, device=DEVICE), torch.randn(128, 1024, device=DEVICE)))
    step()
check()
