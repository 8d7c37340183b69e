"""Scratch buffers, one list a thread, never given back."""
import builtins
import os
import threading
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
scratch = threading.local()


def borrow(rows):
    if not hasattr(scratch, "buffers"):
        scratch.buffers = []
    scratch.buffers.append(torch.empty(rows, 1024, device=DEVICE).zero_())
    return scratch.buffers[-1]


for i in range(24):
    borrow(256).add_(i)
    step()
check()
