"""A mutable default in a module's forward."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Head(nn.Module):
    def forward(self, x, skip=[]):
        skip.append(x)
        return x.mean()


head = Head()
for i in range(24):
    head(torch.randn(256, 1024, device=DEVICE))
    step()
check()
