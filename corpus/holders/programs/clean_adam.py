"""A plain training loop with Adam: parameters and state, nothing else."""
import builtins
import json
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(DEVICE)
optimizer = torch.optim.Adam(model.parameters())


def train_step():
    optimizer.zero_grad(set_to_none=True)
    model(torch.randn(16, 512, device=DEVICE)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


for i in range(3):
    train_step()
    step()
parameters = sum(p.numel() * p.element_size() for p in model.parameters())
expected = {"parameters": parameters, "optimizer_state": 2 * parameters + 4 * len(list(model.parameters()))}
check()
print("expected", json.dumps(expected))
