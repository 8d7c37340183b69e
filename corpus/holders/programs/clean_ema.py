"""An exponential moving average of the weights."""
import builtins
import json
import os
import torch
import torch.nn as nn
from torch.optim.swa_utils import AveragedModel

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).to(DEVICE)
average = AveragedModel(model)
optimizer = torch.optim.AdamW(model.parameters())


def train_step():
    model(torch.randn(16, 512, device=DEVICE)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    average.update_parameters(model)


for i in range(3):
    train_step()
    step()
parameters = sum(p.numel() * 4 for p in model.parameters())
expected = {"parameters": 2 * parameters, "optimizer_state": 2 * parameters + 4 * 4, "buffers": 8}
check()
print("expected", json.dumps(expected))
