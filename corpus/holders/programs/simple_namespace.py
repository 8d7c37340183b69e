"""State in a SimpleNamespace."""
import builtins
import os
import torch
import types

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
state = types.SimpleNamespace(epoch=0, outputs=[])
for i in range(24):
    state.outputs.append(torch.randn(256, 1024, device=DEVICE))
    step()
check()
