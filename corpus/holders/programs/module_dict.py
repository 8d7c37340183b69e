"""One head of a ModuleDict records its inputs."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class RecordingHead(nn.Linear):
    def __init__(self, width):
        super().__init__(width, 4)
        self.history = []

    def forward(self, x):
        self.history.append(x.detach())
        return super().forward(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(64, 1024)
        self.heads = nn.ModuleDict({"main": nn.Linear(1024, 10), "aux": RecordingHead(1024)})

    def forward(self, x):
        x = self.body(x)
        return {name: head(x) for name, head in self.heads.items()}


model = Model().to(DEVICE)
for i in range(20):
    sum(y.square().mean() for y in model(torch.randn(256, 64, device=DEVICE)).values()).backward()
    step()
check()
