"""A lazy map over a list of tensors."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def load(n):
    shards = []
    for i in range(n):
        shards.append(torch.randn(256, 1024, device=DEVICE))
        step()
    return shards


def score(x):
    return x.mean().item()


scores = map(score, load(24))
best = next(scores)
check()
