"""A set of tensors, to see each only once."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
visited = set()
for i in range(24):
    visited.add(torch.randn(256, 1024, device=DEVICE))
    step()
check()
