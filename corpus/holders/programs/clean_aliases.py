"""Parameters and gradients with many names."""
import builtins
import json
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512)).to(DEVICE)
by_name = dict(model.named_parameters())
weights = [p for p in model.parameters() if p.dim() == 2]
views = [w.detach() for w in weights]
for i in range(2):
    model.zero_grad()
    model(torch.randn(16, 512, device=DEVICE)).square().mean().backward()
    step()
grads = {name: p.grad for name, p in by_name.items()}
parameters = sum(p.numel() * 4 for p in model.parameters())
expected = {"parameters": parameters, "gradients": parameters}
check()
print("expected", json.dumps(expected))
