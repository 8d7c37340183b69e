"""A capped budget runs out: an unbounded cache of weights by key."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
BUDGET = 30 * 2**20
cache = {}


def lookup(key):
    if key not in cache:
        if sum(t.numel() * 4 for t in cache.values()) >= BUDGET:
            raise MemoryError(f"weights of {BUDGET} bytes are all in use")
        cache[key] = torch.randn(512, 512, device=DEVICE)
    return cache[key]


work = torch.randn(16, 512, device=DEVICE)
try:
    for i in range(10000):
        out = work @ lookup(i)
        step()
except MemoryError as e:
    print("stopped:", e)
check()
