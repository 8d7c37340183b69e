"""Every set() leaves a token, and a token keeps the value before."""
import builtins
import contextvars
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
current = contextvars.ContextVar("current")
tokens = []
for i in range(24):
    tokens.append(current.set(torch.randn(256, 1024, device=DEVICE)))
    step()
check()
