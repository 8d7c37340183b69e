"""A generator remembers what it yielded, and it is not finished."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def batches(n):
    seen = []
    for _ in range(n):
        seen.append(torch.randn(256, 1024, device=DEVICE))
        yield seen[-1].mean()


stream = batches(1000)
for i in range(24):
    mean = next(stream)
    step()
check()
