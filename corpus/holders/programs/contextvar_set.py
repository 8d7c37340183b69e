"""A context variable holds the trace of the current request."""
import builtins
import contextvars
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
trace = contextvars.ContextVar("trace")


def record(x):
    trace.get().append(x)


trace.set([])
for i in range(24):
    record(torch.randn(256, 1024, device=DEVICE))
    step()
check()
