"""Clean: a queue that grows to 20 and drains again, every 40 steps. The last snapshot is on a rising edge."""
import collections, torch, probe
import torch.nn as nn

model = nn.Linear(512, 512).cuda()
work = collections.deque()
probe.start()
with torch.no_grad():
    for i in range(probe.steps(218)):
        for _ in range(2 if i % 40 < 20 else 0):
            work.append(torch.randn(64, 512, device="cuda"))
        if work:
            model(work.popleft()).sum().item()
        probe.step(i, queued=len(work))
        if i in (70, 140, 217):
            probe.snap(f"step{i + 1}")
probe.done(kind="none")
