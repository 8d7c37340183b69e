"""Each checkpoint registers its own goodbye."""
import atexit
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def summarize(epoch, weights):
    return epoch, weights.shape


for epoch in range(24):
    atexit.register(summarize, epoch, torch.randn(256, 1024, device=DEVICE))
    step()
check()
