"""A hand-written linked list of past states."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Node:
    def __init__(self, payload, next):
        self.payload = payload
        self.next = next


head = None
for i in range(400):
    head = Node(torch.randn(16, 1024, device=DEVICE), head)
    step()
check()
