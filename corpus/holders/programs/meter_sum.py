"""The AverageMeter of every training script, fed with losses instead of floats."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class AverageMeter:
    def __init__(self):
        self.sum, self.count, self.val = 0, 0, None

    def update(self, val, n=1):
        self.val = val
        self.sum = self.sum + val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1)).to(DEVICE)
meter = AverageMeter()
for i in range(20):
    meter.update(model(torch.randn(256, 256, device=DEVICE)).square().mean(), 256)
    step()
check()
