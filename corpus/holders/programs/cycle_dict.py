"""A context that is registered with itself."""
import builtins
import gc
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Context:
    def __init__(self, workspace):
        self.workspace = workspace
        self.registry = {"root": self}


def run():
    context = Context(torch.randn(256, 1024, device=DEVICE))
    return context.workspace.mean().item()


gc.disable()
for i in range(24):
    run()
    step()
check()
