"""A SimpleQueue that nobody drains."""
import builtins
import os
import queue
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
inbox = queue.SimpleQueue()
for i in range(24):
    inbox.put(torch.randn(256, 1024, device=DEVICE))
    step()
check()
