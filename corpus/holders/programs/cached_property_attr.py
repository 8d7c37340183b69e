"""Features computed once per sample and never dropped."""
import builtins
import functools
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Sample:
    def __init__(self, index):
        self.index = index

    @functools.cached_property
    def features(self):
        return torch.randn(256, 1024, device=DEVICE)


samples = [Sample(i) for i in range(24)]
for sample in samples:
    sample.features.mean()
    step()
check()
