"""A block knows its parent, wrapped in a tuple so that it is not registered."""
import builtins
import gc
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Block(nn.Module):
    def __init__(self, parent):
        super().__init__()
        self.parent = (parent,)
        self.weight = nn.Parameter(torch.randn(512, 512) / 23)

    def forward(self, x):
        return x @ self.weight * self.parent[0].scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 0.5
        self.block = Block(self)

    def forward(self, x):
        return self.block(x)


@torch.no_grad()
def trial():
    return Net().to(DEVICE)(torch.randn(4, 512, device=DEVICE)).std().item()


gc.disable()
for i in range(20):
    trial()
    step()
check()
