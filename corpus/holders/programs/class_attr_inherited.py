"""A cache in the base class, filled by a subclass."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Encoder:
    cache = {}

    def encode(self, key):
        if key not in self.cache:
            self.cache[key] = self.compute(key)
        return self.cache[key]


class RandomEncoder(Encoder):
    def compute(self, key):
        return torch.randn(256, 1024, device=DEVICE) + key


encoder = RandomEncoder()
for i in range(24):
    encoder.encode(i).mean()
    step()
check()
