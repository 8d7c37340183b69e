"""Saliency maps: inputs with gradients are kept for a plot."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Linear(1024, 1).to(DEVICE).requires_grad_(False)
inputs = []


def saliency():
    x = torch.randn(256, 1024, device=DEVICE, requires_grad=True)
    model(x).sum().backward()
    inputs.append(x)


for i in range(12):
    saliency()
    step()
check()
