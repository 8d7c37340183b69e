"""Outputs pile up at every step; at step 200 of 240 the first 20 are dropped as warm-up, the rest stay and more come."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
outputs = []
probe.start()
for i in range(probe.steps(240)):
    x = torch.randn(128, 256, device="cuda")
    y = model(x)  # ALLOC
    loss = (y - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    outputs.append(y.detach())  # LEAK
    if i == 200:
        del outputs[:20]
    probe.step(i)
    if i in (79, 159, 239):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
