"""Weak references with callbacks: the callback is held, and what is bound to it."""
import builtins
import functools
import os
import torch
import torch.nn as nn
import weakref

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Linear(8, 8).to(DEVICE)
watchers = []


def released(scratch, ref):
    return scratch.shape


for i in range(24):
    watchers.append(weakref.ref(model, functools.partial(released, torch.randn(256, 1024, device=DEVICE))))
    step()
check()
