"""A snapshot of the weights after every step."""
import builtins
import copy
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 512)).to(DEVICE)
snapshots = []
for i in range(24):
    model(torch.randn(16, 512, device=DEVICE)).square().mean().backward()
    snapshots.append(copy.deepcopy(model.state_dict()))
    step()
check()
