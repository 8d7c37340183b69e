"""The mutable keyword-only default."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def smooth(x, *, window=[]):
    window.append(x)
    return sum(w.mean() for w in window[-4:]) / 4


for i in range(24):
    smooth(torch.randn(256, 1024, device=DEVICE))
    step()
check()
