"""One row of each batch is kept; it keeps the batch."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
thumbs = []
for i in range(24):
    batch = torch.randn(256, 1024, device=DEVICE)
    thumbs.append(batch[0])
    step()
del batch
check()
