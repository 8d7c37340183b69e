"""Statistics by phase, by layer, by step."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
stats = {"train": {"conv1": [], "conv2": []}, "eval": {"conv1": [], "conv2": []}}
for i in range(24):
    phase = "train" if i % 4 else "eval"
    stats[phase][f"conv{1 + i % 2}"].append(torch.randn(256, 1024, device=DEVICE))
    step()
check()
