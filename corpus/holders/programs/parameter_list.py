"""A prototype bank gets a new parameter for each new class, for ever."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.prototypes = nn.ParameterList()

    def grow(self, x):
        self.prototypes.append(nn.Parameter(x))


bank = Bank().to(DEVICE)
for i in range(24):
    bank.grow(torch.randn(256, 1024, device=DEVICE))
    step()
check()
