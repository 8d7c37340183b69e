"""Every output is put into two lists."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
recent, archive = [], []


def remember(x):
    recent.append(x)
    archive.append(x)


for i in range(24):
    remember(torch.randn(256, 1024, device=DEVICE))
    step()
check()
