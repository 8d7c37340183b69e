"""A sliding window without maxlen."""
import builtins
import collections
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
window = collections.deque()
for i in range(24):
    window.append(torch.randn(256, 1024, device=DEVICE))
    mean = sum(float(x[0, 0]) for x in list(window)[-8:]) / 8
    step()
check()
