"""A tracker made by a factory keeps its list in the closure."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def make_tracker():
    kept = []

    def append(x):
        kept.append(x)
        return len(kept)

    return append


track = make_tracker()
for i in range(24):
    track(torch.randn(256, 1024, device=DEVICE))
    step()
check()
