"""Clean: deque(maxlen=200) in a run of 240 steps: one in, one out in the last 40."""
import collections, torch, probe
import torch.nn as nn

model = nn.Linear(512, 512).cuda()
recent = collections.deque(maxlen=200)
probe.start()
with torch.no_grad():
    for i in range(probe.steps(240)):
        y = model(torch.randn(64, 512, device="cuda"))
        recent.append(y)
        (y - recent[0]).abs().mean().item()
        probe.step(i)
        if i in (79, 159, 239):
            probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
