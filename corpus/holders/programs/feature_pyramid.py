"""A detector's feature list lives on the module, so every forward adds to it."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class FeaturePyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3 if i == 0 else 8, 8, 3, padding=1) for i in range(4)])
        self.features = []

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            self.features.append(x)
        return x


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.neck = FeaturePyramid()
        self.head = nn.Conv2d(8, 5, 1)

    def forward(self, x):
        return self.head(self.neck(x))


def train_one_step(model, optimizer):
    optimizer.zero_grad()
    loss = model(torch.randn(2, 3, 128, 128, device=DEVICE)).square().mean()
    loss.backward()
    optimizer.step()


model = Detector().to(DEVICE)
optimizer = torch.optim.Adam(model.parameters())
for i in range(10):
    train_one_step(model, optimizer)
    step()
check()
