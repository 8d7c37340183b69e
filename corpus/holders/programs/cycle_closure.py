"""A recursive inner function is a cycle: retry -> its closure -> retry."""
import builtins
import gc
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def attempt(batch):
    def retry(left):
        return batch.mean().item() if left == 0 else retry(left - 1)

    return retry(3)


gc.disable()
for i in range(24):
    attempt(torch.randn(256, 1024, device=DEVICE))
    step()
check()
