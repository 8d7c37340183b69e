"""A queue that nobody drains."""
import builtins
import os
import queue
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
results = queue.Queue()
for i in range(24):
    results.put(torch.randn(256, 1024, device=DEVICE))
    step()
check()
