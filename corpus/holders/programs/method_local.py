"""The local of a method."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Trainer:
    def __init__(self):
        self.model = nn.Linear(512, 512).to(DEVICE)

    def fit(self, steps):
        outputs = []
        for i in range(steps):
            outputs.append(self.model(torch.randn(512, 512, device=DEVICE)).detach())
            step()
        check()
        return torch.cat(outputs).std().item()


Trainer().fit(24)
