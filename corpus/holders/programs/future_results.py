"""Finished futures keep their results."""
import builtins
import concurrent.futures
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def job(i):
    return torch.full((256, 1024), float(i), device=DEVICE)


futures = []
with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
    for i in range(24):
        futures.append(pool.submit(job, i))
        concurrent.futures.wait(futures)
        step()
check()
