"""BatchNorm and SGD with momentum; the gradients have not been cleared."""
import builtins
import json
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Linear(512, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, 512)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)


def train_step():
    optimizer.zero_grad()
    model(torch.randn(16, 512, device=DEVICE)).square().mean().backward()
    optimizer.step()


for i in range(3):
    train_step()
    step()
parameters = sum(p.numel() * p.element_size() for p in model.parameters())
buffers = 2 * 1024 * 4 + 8
expected = {"parameters": parameters, "gradients": parameters, "optimizer_state": parameters, "buffers": buffers}
check()
print("expected", json.dumps(expected))
