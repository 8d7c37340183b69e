"""enumerate(reversed(list)), kept between rounds."""
import builtins
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


numbered = enumerate(reversed(load(24)))
index = next(numbered)[0]
check()
