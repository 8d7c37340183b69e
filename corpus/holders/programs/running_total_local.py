"""The same running total, inside a function."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def evaluate(model, criterion, steps):
    total = torch.zeros((), device=DEVICE)
    for i in range(steps):
        total = total + criterion(model(torch.randn(256, 256, device=DEVICE)), torch.zeros(256, 1, device=DEVICE))
        step()
    check()
    return total.item() / steps


model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1)).to(DEVICE)
print(f"mean {evaluate(model, nn.MSELoss(), 20):.3f}")
