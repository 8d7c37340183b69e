"""One large table as a class attribute."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Config:
    positions = None

    @classmethod
    def prepare(cls, n):
        cls.positions = torch.randn(n, 1024, device=DEVICE)


Config.prepare(6144)
step()
check()
