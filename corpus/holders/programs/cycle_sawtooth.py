"""Python reference cycles hold tensors until the collector runs: a sawtooth, not a monotone leak."""
import builtins
import gc
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Node:
    def __init__(self, payload):
        self.payload = payload
        self.me = self


gc.collect()
for i in range(30):
    node = Node(torch.randn(256, 1024, device=DEVICE))
    del node
    step()
check()
gc.collect()
