"""A tensor hook keeps every gradient that passes."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def watch(p):
    grads = []

    def keep(g):
        grads.append(g.clone())

    p.register_hook(keep)


model = nn.Linear(512, 512, bias=False).to(DEVICE)
watch(model.weight)
for i in range(24):
    model.zero_grad()
    model(torch.randn(16, 512, device=DEVICE)).square().mean().backward()
    step()
check()
