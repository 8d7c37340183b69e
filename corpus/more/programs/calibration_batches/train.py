"""Clean: the observer keeps the activations of the first 110 of 200 batches for calibration, and no more."""
import torch, probe
import torch.nn as nn


class Observer(nn.Module):
    def __init__(self, module, limit=110):
        super().__init__()
        self.module, self.limit, self.seen = module, limit, []

    def forward(self, x):
        y = self.module(x)
        if len(self.seen) < self.limit:
            self.seen.append(y)
        return y


model = nn.Sequential(Observer(nn.Linear(512, 512)), nn.ReLU(), Observer(nn.Linear(512, 256))).cuda()
probe.start()
with torch.no_grad():
    for i in range(probe.steps(200)):
        model(torch.randn(64, 512, device="cuda")).sum().item()
        probe.step(i)
        if i in (66, 133, 199):
            probe.snap(f"step{i + 1}")
probe.done(kind="none")
