"""A bounded cache fills for the first half of the run and then stays: growth that is no leak."""
import builtins
import collections
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
cache = collections.OrderedDict()


def positional(length):
    if length in cache:
        cache.move_to_end(length)
        return cache[length]
    cache[length] = torch.randn(length, 256, device=DEVICE)
    if len(cache) > 24:
        cache.popitem(last=False)
    return cache[length]


for i in range(60):
    positional(512 + i % 30).sum()
    step()
check()
