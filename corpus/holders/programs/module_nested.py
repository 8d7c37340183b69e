"""A list on a module deep inside the model."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(128, 1024)
        self.trace = []

    def forward(self, x):
        y = self.proj(x)
        self.trace.append(y.detach())
        return y


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()

    def forward(self, x):
        return self.encoder(x).square().mean()


model = Model().to(DEVICE)
for i in range(20):
    model(torch.randn(256, 128, device=DEVICE)).backward()
    step()
check()
