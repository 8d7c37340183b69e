"""A very deep graph: an unrolled recurrence."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
gain = torch.full((2048,), 0.999, device=DEVICE, requires_grad=True)
x = torch.ones(2048, device=DEVICE)
for i in range(3000):
    x = (x * gain).tanh()
    step()
check()
del x
