"""A helper module collects outputs in a list of its own."""
import builtins
import os
import sys
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "helpers"))
import run_stats

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
for i in range(24):
    run_stats.record(torch.randn(256, 1024, device=DEVICE))
    step()
check()
