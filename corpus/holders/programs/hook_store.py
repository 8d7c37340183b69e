"""A forward hook for debugging keeps every activation."""
import builtins
import collections
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU6(), nn.Conv2d(16, 32, 3), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten()).to(DEVICE).eval()
activations = collections.defaultdict(list)


def remember(name):
    def hook(module, inputs, output):
        activations[name].append(output)
    return hook


for name, module in model.named_modules():
    if isinstance(module, nn.ReLU6):
        module.register_forward_hook(remember(name))

with torch.no_grad():
    for i in range(20):
        model(torch.randn(2, 3, 96, 96, device=DEVICE))
        step()
check()
