"""A trainer keeps its outputs for the end of the epoch that never comes."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.outputs = []

    @torch.no_grad()
    def validation_step(self, x):
        self.outputs.append(self.model(x))


trainer = Trainer(nn.Linear(256, 1024).to(DEVICE))
for i in range(24):
    trainer.validation_step(torch.randn(256, 256, device=DEVICE))
    step()
check()
