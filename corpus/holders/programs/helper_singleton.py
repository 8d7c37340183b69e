"""A module-level tracker object that everybody shares."""
import builtins
import os
import sys
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "helpers"))
import run_stats

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def evaluate(x):
    run_stats.tracker.add(x.sigmoid())


for i in range(24):
    evaluate(torch.randn(256, 1024, device=DEVICE))
    step()
check()
