"""The mutable default argument."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def embed(key, cache={}):
    if key not in cache:
        cache[key] = torch.randn(256, 1024, device=DEVICE)
    return cache[key]


for i in range(24):
    embed(i).mean()
    step()
check()
