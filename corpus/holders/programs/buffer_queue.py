"""A feature queue, registered as a buffer, without its limit."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class MemoryBank(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("queue", torch.zeros(0, 1024))

    @torch.no_grad()
    def forward(self, x):
        self.queue = torch.cat([self.queue, x])


bank = MemoryBank().to(DEVICE)
for i in range(24):
    bank(torch.randn(256, 1024, device=DEVICE))
    step()
check()
