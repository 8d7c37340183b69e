"""A metaclass remembers every plugin class it made, and the class its weights."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Registry(type):
    instances = []

    def __call__(cls, *args):
        made = super().__call__(*args)
        Registry.instances.append(made)
        return made


class Expert(metaclass=Registry):
    def __init__(self, i):
        self.weights = torch.randn(256, 1024, device=DEVICE)


def try_expert(i):
    return Expert(i).weights.mean().item()


for i in range(24):
    try_expert(i)
    step()
check()
