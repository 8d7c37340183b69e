"""Clean, recorded with context="state": the last 40 outputs."""
import collections, torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 384)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
recent = collections.deque(maxlen=40)
probe.start(context="state")
for i in range(probe.steps(150)):
    x = torch.randn(128, 512, device="cuda")
    y = model(x)
    loss = y.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(y.detach())
    probe.step(i)
    if i in (49, 99, 149):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
