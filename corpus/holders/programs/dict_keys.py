"""Batches as keys of a dict."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
first_seen = {}


def note(batch, i):
    if batch not in first_seen:
        first_seen[batch] = i


for i in range(24):
    note(torch.randn(256, 1024, device=DEVICE), i)
    step()
check()
