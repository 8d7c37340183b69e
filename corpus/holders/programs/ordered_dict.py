"""An LRU cache whose eviction compares the wrong thing."""
import builtins
import collections
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
LIMIT = 8
cache = collections.OrderedDict()


def lookup(length):
    if length in cache:
        cache.move_to_end(length)
    else:
        cache[length] = torch.randn(256, 1024, device=DEVICE)
        if len(cache) > LIMIT * 1000:
            cache.popitem(last=False)
    return cache[length]


for i in range(24):
    lookup(i).mean()
    step()
check()
