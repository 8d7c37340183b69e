"""Clean: a search keeps the states on its path in a stack: down and up again, 12 times; snapshots at different depths."""
import random, torch, probe
import torch.nn as nn

rng = random.Random(35)
net = nn.Linear(256, 256).cuda()
path = [torch.randn(128, 256, device="cuda")]
probe.start()
with torch.no_grad():
    for i in range(probe.steps(260)):
        down = rng.random() < (0.85 if i % 22 < 11 else 0.15)
        if down or len(path) == 1:
            path.append(torch.tanh(net(path[-1])))
        else:
            path.pop()
        path[-1].mean().item()
        probe.step(i, depth=len(path))
        if i in (86, 173, 259):
            probe.snap(f"step{i + 1}")
probe.done(kind="none")
