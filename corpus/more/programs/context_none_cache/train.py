"""Clean, recorded with context=None (no stacks at all): an LRU of 40 and an evaluation every 20 steps."""
import collections, torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
recent = collections.deque(maxlen=40)
probe.start(context=None)
for i in range(probe.steps(160)):
    x = torch.randn(96, 512, device="cuda")
    y = model(x)
    loss = nn.functional.mse_loss(y, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(y.detach())
    if i % 20 == 19:
        with torch.no_grad():
            torch.stack([model(torch.randn(96, 512, device="cuda")) for _ in range(6)]).std().item()
    probe.step(i)
    if i in (52, 105, 159):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
