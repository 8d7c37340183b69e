"""Records as named tuples."""
import builtins
import collections
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
Record = collections.namedtuple("Record", "index hidden")
history = []
for i in range(24):
    history.append(Record(i, torch.randn(256, 1024, device=DEVICE)))
    step()
check()
