"""Inner steps with backward(create_graph=True) never die."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def inner_step():
    fast = torch.randn(256, 1024, device=DEVICE, requires_grad=True)
    loss = (fast ** 3).sum()
    loss.backward(create_graph=True)
    return loss.item()


for i in range(20):
    inner_step()
    step()
check()
