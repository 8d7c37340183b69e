"""Losses are kept after backward(retain_graph=True)."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
history = []


def train_step():
    optimizer.zero_grad()
    loss = model(torch.randn(256, 256, device=DEVICE)).square().mean()
    loss.backward(retain_graph=True)
    optimizer.step()
    history.append(loss)


for i in range(20):
    train_step()
    step()
check()
