"""Bound methods of tensors are kept for later."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
getters = []


def watch(x):
    getters.append(x.mean)


for i in range(24):
    watch(torch.randn(256, 1024, device=DEVICE))
    step()
check()
