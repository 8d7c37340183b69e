"""max_split_size_mb:32 and a leak of 40 MiB every fifth step: each its own segment."""
import torch, probe
import torch.nn as nn

model = nn.Linear(1024, 1024).cuda()
maps = []
probe.start()
with torch.no_grad():
    for i in range(probe.steps(120)):
        y = model(torch.randn(10240, 1024, device="cuda"))  # ALLOC
        y.sum().item()
        if i % 5 == 0:
            maps.append(y)  # LEAK
        probe.step(i)
        if i in (39, 79, 119):
            probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
