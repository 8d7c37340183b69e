"""lru_cache with a generous bound."""
import builtins
import functools
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


@functools.lru_cache(maxsize=512)
def positional(length):
    return torch.randn(length, 1024, device=DEVICE)


for i in range(24):
    positional(240 + i).mean()
    step()
check()
