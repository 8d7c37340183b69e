"""Hyper-parameter trials: model and trainer refer to each other, the collector is off, and each round ends in gc.collect()."""
import gc, torch, probe
import torch.nn as nn

device = "cuda"


class Trainer:
    def __init__(self, width):
        self.model = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, 512)).to(device)  # ALLOC
        self.model.register_forward_hook(self.count)  # LEAK
        self.optimizer = torch.optim.AdamW(self.model.parameters(), fused=True)
        self.calls = 0

    def count(self, module, args, output):
        self.calls += 1

    def fit(self, steps):
        for _ in range(steps):
            x = torch.randn(32, 512, device=device)
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), x)
            loss.backward()
            self.optimizer.step()  # ALLOC
        return loss.item()


gc.collect()
gc.disable()
probe.start()
n, results = 0, []
for round in range(5):
    for trial in range(16):
        results.append(Trainer(1024).fit(2))
        probe.step(n, round=round)
        n += 1
        if n in (27, 53, 78):
            probe.snap(f"step{n}")
    gc.collect()
probe.done(kind="reference-cycle")
