"""A weak registry of all results, and one list that really keeps them."""
import builtins
import os
import torch
import weakref

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Result:
    def __init__(self, output):
        self.output = output


class Keep:
    def __init__(self):
        self.results = []


registry = weakref.WeakValueDictionary()
keep = Keep()


def serve(i):
    result = Result(torch.randn(256, 1024, device=DEVICE))
    registry[i] = result
    keep.results.append(result)


for i in range(24):
    serve(i)
    step()
check()
