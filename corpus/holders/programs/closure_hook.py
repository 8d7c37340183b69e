"""A hook keeps activations in the closure of the function that registered it."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)

    def forward(self, x):
        return self.conv(x).mean()


def attach(module):
    acts = []

    def hook(module, inputs, output):
        acts.append(output)

    module.register_forward_hook(hook)


model = Net().to(DEVICE)
attach(model.conv)
with torch.no_grad():
    for i in range(20):
        model(torch.randn(4, 3, 64, 64, device=DEVICE))
        step()
check()
