"""A buffer with random eviction that drops one for every two that come."""
import random, torch, probe
import torch.nn as nn

rng = random.Random(33)
model = nn.Linear(512, 512).cuda()
buffer = []
probe.start()
with torch.no_grad():
    for i in range(probe.steps(200)):
        buffer.append(model(torch.randn(64, 512, device="cuda")))  # LEAK ALLOC
        buffer[-1].sum().item()
        if i % 2:
            buffer.pop(rng.randrange(len(buffer)))
        probe.step(i)
        if i in (66, 133, 199):
            probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
