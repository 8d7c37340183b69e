"""Finalizers of a long-lived server keep their arguments until it dies."""
import builtins
import os
import torch
import weakref

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Server:
    pass


def flush(request, result):
    return request, result.shape


server = Server()
for i in range(24):
    weakref.finalize(server, flush, i, torch.randn(256, 1024, device=DEVICE))
    step()
check()
