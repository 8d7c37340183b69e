"""Clean: a FIFO buffer of 120, and a ring of entries that covers only some 40 steps: what is evicted was born before it."""
import collections, torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
buffer = collections.deque(maxlen=120)
probe.start(max_entries=1500)
for i in range(probe.steps(420)):
    x = torch.randn(256, 256, device="cuda")
    y = model(x)
    loss = (y - x).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    buffer.append(y.detach())
    probe.step(i)
    if i in (219, 319, 419):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
