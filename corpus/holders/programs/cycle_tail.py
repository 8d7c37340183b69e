"""A ring of two nodes, and a tail that has the memory."""
import builtins
import gc
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Tail:
    def __init__(self):
        self.data = [torch.randn(256, 1024, device=DEVICE)]


class Ring:
    def __init__(self):
        self.next = None


def turn():
    a, b = Ring(), Ring()
    a.next, b.next = b, a
    a.tail = Tail()


gc.disable()
for i in range(24):
    turn()
    step()
check()
