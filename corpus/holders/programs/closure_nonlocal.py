"""A nonlocal tensor that grows with every call."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def make_observer():
    history = torch.zeros(0, 1024, device=DEVICE)

    def update(x):
        nonlocal history
        history = torch.cat([history, x])
        return history.shape[0]

    return update


observe = make_observer()
for i in range(24):
    observe(torch.randn(256, 1024, device=DEVICE))
    step()
check()
