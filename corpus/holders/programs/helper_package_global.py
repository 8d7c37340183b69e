"""A serving package remembers the result of every request."""
import builtins
import os
import sys
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "helpers"))
from serving import registry

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
for request in range(24):
    registry.answer(f"request-{request}", torch.randn(256, 1024, device=DEVICE))
    step()
check()
