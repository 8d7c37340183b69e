"""A background thread keeps a buffer in its frame."""
import builtins
import os
import threading
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def worker(filled, stop):
    buffer = []
    for i in range(24):
        buffer.append(torch.randn(256, 1024, device=DEVICE))
        step()
    filled.set()
    stop.wait()


filled, stop = threading.Event(), threading.Event()
thread = threading.Thread(target=worker, args=(filled, stop), daemon=True)
thread.start()
filled.wait()
check()
stop.set()
thread.join()
