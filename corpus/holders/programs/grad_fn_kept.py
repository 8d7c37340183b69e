"""Only grad_fn is kept, for drawing the graph later."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1)).to(DEVICE)
nodes = []
for i in range(20):
    nodes.append(model(torch.randn(256, 256, device=DEVICE)).square().mean().grad_fn)
    step()
check()
