"""A list in the class body is shared by all instances, for ever."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Meter:
    values = []

    def update(self, value):
        self.values.append(value)


def evaluate():
    meter = Meter()
    meter.update(torch.randn(256, 1024, device=DEVICE))


for i in range(24):
    evaluate()
    step()
check()
