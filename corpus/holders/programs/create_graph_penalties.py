"""Gradient penalties, kept for a plot."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
critic = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1)).to(DEVICE)
penalties = []


def penalty():
    x = torch.randn(256, 256, device=DEVICE, requires_grad=True)
    (grad,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return (grad.norm(dim=1) - 1).square().mean()


for i in range(20):
    penalties.append(penalty())
    step()
check()
