"""A search tree whose nodes know their parent."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Node:
    def __init__(self, parent, state):
        self.parent = parent
        self.state = state
        self.children = []


root = Node(None, torch.zeros(1, device=DEVICE))
for i in range(24):
    root.children.append(Node(root, torch.randn(256, 1024, device=DEVICE)))
    step()
check()
