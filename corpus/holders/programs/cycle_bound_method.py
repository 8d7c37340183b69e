"""An object stores a bound method of itself."""
import builtins
import gc
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Session:
    def __init__(self):
        self.features = torch.randn(256, 1024, device=DEVICE)
        self.callback = self.finish

    def finish(self):
        return self.features.mean().item()


gc.disable()
for i in range(24):
    Session().callback()
    step()
check()
