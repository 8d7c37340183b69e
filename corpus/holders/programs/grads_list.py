"""Gradients of past steps are collected."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Linear(512, 512, bias=False).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
grads = []
for i in range(24):
    optimizer.zero_grad(set_to_none=True)
    model(torch.randn(16, 512, device=DEVICE)).square().mean().backward()
    grads.append(model.weight.grad)
    optimizer.step()
    step()
check()
