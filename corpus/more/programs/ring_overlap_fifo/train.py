"""Clean: the same, with snapshots so close that they overlap."""
import collections, torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
buffer = collections.deque(maxlen=200)
probe.start(max_entries=2500)
for i in range(probe.steps(420)):
    x = torch.randn(256, 256, device="cuda")
    y = model(x)
    loss = (y - x).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    buffer.append(y.detach())
    probe.step(i)
    if i in (359, 389, 419):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
