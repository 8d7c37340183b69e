"""Clean: one dict of features, cleared either after an evaluation (one line) or at a checkpoint (another)."""
import torch, probe
import torch.nn as nn

model = nn.Linear(256, 256).cuda()
features = {}


def evaluate():
    torch.stack(list(features.values())).mean().item()
    features.clear()


def checkpoint():
    torch.stack(list(features.values())).std().item()
    features.clear()


probe.start()
with torch.no_grad():
    for i in range(probe.steps(190)):
        features[i] = model(torch.randn(256, 256, device="cuda"))
        if i % 40 == 19:
            evaluate()
        elif i % 40 == 39:
            checkpoint()
        probe.step(i)
        if i in (65, 128, 189):
            probe.snap(f"step{i + 1}")
probe.done(kind="none")
