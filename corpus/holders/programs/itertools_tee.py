"""One branch of a tee runs ahead."""
import builtins
import itertools
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def batches():
    while True:
        yield torch.randn(16, 1024, device=DEVICE)


ahead, behind = itertools.tee(batches())
for i in range(400):
    mean = next(ahead).mean().item()
    step()
check()
