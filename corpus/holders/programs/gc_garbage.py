"""Left over from a debugging session: DEBUG_SAVEALL keeps all garbage."""
import builtins
import gc
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Session:
    def __init__(self):
        self.payload = torch.randn(256, 1024, device=DEVICE)
        self.owner = self


gc.collect()
gc.set_debug(gc.DEBUG_SAVEALL)
for i in range(24):
    Session()
    step()
gc.collect()
check()
gc.set_debug(0)
gc.garbage.clear()
