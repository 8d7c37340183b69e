"""Features by label, in a defaultdict of lists."""
import builtins
import collections
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
by_label = collections.defaultdict(list)
for i in range(24):
    by_label[i % 3].append(torch.randn(256, 1024, device=DEVICE))
    step()
check()
