"""A ring of 1500 entries, wrapped between the snapshots: they do not overlap."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
kept = []
probe.start(max_entries=1500)
for i in range(probe.steps(300)):
    x = torch.randn(256, 256, device="cuda")
    y = model(x)  # ALLOC
    loss = (y - x).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 2:
        kept.append(y.detach())  # LEAK
    probe.step(i)
    if i in (99, 199, 299):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
