"""lru_cache on a method keeps the instances."""
import builtins
import functools
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Session:
    def __init__(self):
        self.features = torch.randn(256, 1024, device=DEVICE)

    @functools.lru_cache(maxsize=None)
    def summary(self):
        return self.features.mean().item()


def serve():
    return Session().summary()


for i in range(24):
    serve()
    step()
check()
