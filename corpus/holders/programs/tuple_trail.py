"""A functional style trail: trail = trail + (x,)."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
trail = ()
for i in range(24):
    trail = trail + (torch.randn(256, 1024, device=DEVICE),)
    step()
check()
