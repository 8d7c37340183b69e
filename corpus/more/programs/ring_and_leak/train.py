"""One line feeds a ring of the last 30 and, every tenth step, a list that is never emptied."""
import collections, torch, probe
import torch.nn as nn

model = nn.Linear(512, 512).cuda()
recent, examples = collections.deque(maxlen=30), []
probe.start()
with torch.no_grad():
    for i in range(probe.steps(220)):
        y = model(torch.randn(64, 512, device="cuda"))  # ALLOC
        recent.append(y)
        torch.stack(list(recent)).mean().item()
        if i % 10 == 4:
            examples.append(y)  # LEAK
        probe.step(i)
        if i in (73, 146, 219):
            probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
