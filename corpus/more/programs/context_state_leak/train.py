"""Recorded with context="state": the events have no stacks, only the blocks that are left do."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 384)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
logits = []
probe.start(context="state")
for i in range(probe.steps(120)):
    x = torch.randn(128, 512, device="cuda")
    y = model(x)  # ALLOC
    loss = y.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    logits.append(y.detach())  # LEAK
    probe.step(i)
    if i in (39, 79, 119):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
