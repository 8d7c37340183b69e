"""Classes are made in a loop, each with its table as a class attribute."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
kinds = []
for i in range(24):
    kinds.append(type("Kind", (), {"table": torch.randn(256, 1024, device=DEVICE)}))
    step()
check()
