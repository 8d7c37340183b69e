"""Old gradients are remembered on the parameter itself."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Linear(512, 512, bias=False).to(DEVICE)
model.weight.past_grads = []


def train_step():
    model.zero_grad()
    model(torch.randn(16, 512, device=DEVICE)).square().mean().backward()
    for p in model.parameters():
        p.past_grads.append(p.grad.clone())


for i in range(24):
    train_step()
    step()
check()
