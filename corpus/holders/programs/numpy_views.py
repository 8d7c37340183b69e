"""Arrays that are views of tensors."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
arrays = []


def export(x):
    arrays.append(x.cpu().numpy())


for i in range(24):
    export(torch.randn(256, 1024, device=DEVICE))
    step()
check()
