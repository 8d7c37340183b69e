"""Trial models that hook themselves."""
import builtins
import gc
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(512, 512) / 23)
        self.calls = 0
        self.register_forward_hook(self.count)

    def count(self, module, inputs, output):
        self.calls += 1

    def forward(self, x):
        return x @ self.weight


@torch.no_grad()
def trial():
    return Net().to(DEVICE)(torch.randn(4, 512, device=DEVICE)).std().item()


gc.disable()
for i in range(20):
    trial()
    step()
check()
