"""A chain over two lists, one of them not begun."""
import builtins
import itertools
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def load(n):
    shards = []
    for i in range(n):
        shards.append(torch.randn(256, 1024, device=DEVICE))
        step()
    return shards


stream = itertools.chain(load(12), load(12))
shape = next(stream).shape
check()
