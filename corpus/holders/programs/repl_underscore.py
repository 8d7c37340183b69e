"""At the prompt, the last shown result stays in builtins._"""
import builtins
import os
import sys
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
for i in range(3):
    sys.displayhook(torch.zeros(8192, 1024, device=DEVICE) + i)
    step()
check()
