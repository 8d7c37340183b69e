"""Features are kept, and so are the losses that saved them."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
scale = torch.ones(1024, device=DEVICE, requires_grad=True)
features, losses = [], []


def forward(x):
    features.append(x)
    losses.append((x * scale).sum())


for i in range(20):
    forward(torch.randn(256, 1024, device=DEVICE))
    step()
check()
