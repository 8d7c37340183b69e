"""Lists of dicts with losses, as an epoch-end hook expects them."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1)).to(DEVICE)


def training_step(x):
    loss = model(x).square().mean()
    return {"loss": loss, "scaled": loss * 0.1}


outputs = []
for i in range(20):
    outputs.append(training_step(torch.randn(256, 256, device=DEVICE)))
    step()
check()
