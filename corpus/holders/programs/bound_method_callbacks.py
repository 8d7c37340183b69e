"""Callbacks are bound methods of objects that nobody else has any more."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
callbacks = []


class Listener:
    def __init__(self):
        self.buffer = torch.randn(256, 1024, device=DEVICE)

    def on_epoch_end(self):
        return self.buffer.mean().item()


def subscribe():
    callbacks.append(Listener().on_epoch_end)


for i in range(24):
    subscribe()
    step()
check()
