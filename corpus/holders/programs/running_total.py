"""A running total of losses that are still attached to their graphs."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1)).to(DEVICE)
criterion = nn.MSELoss()
total = 0.0
for i in range(20):
    total += criterion(model(torch.randn(256, 256, device=DEVICE)), torch.zeros(256, 1, device=DEVICE))
    step()
check()
print(f"mean {total.item() / 20:.3f}")
