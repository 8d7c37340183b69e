"""Two lists of one object hold the same tensors."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Trainer:
    def __init__(self):
        self.recent, self.archive = [], []

    def remember(self, x):
        self.recent.append(x)
        self.archive.append(x)


trainer = Trainer()
for i in range(24):
    trainer.remember(torch.randn(256, 1024, device=DEVICE))
    step()
check()
