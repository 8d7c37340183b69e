"""Clean: a write buffer is flushed oldest first (popleft) whenever it holds 16."""
import collections, torch, probe
import torch.nn as nn

model = nn.Linear(512, 512).cuda()
pending = collections.deque()
written = 0


def flush():
    global written
    while pending:
        written += pending.popleft().sum().item()


probe.start()
with torch.no_grad():
    for i in range(probe.steps(200)):
        pending.append(model(torch.randn(128, 512, device="cuda")))
        if len(pending) == 16:
            flush()
        probe.step(i)
        if i in (70, 137, 199):
            probe.snap(f"step{i + 1}")
probe.done(kind="none")
