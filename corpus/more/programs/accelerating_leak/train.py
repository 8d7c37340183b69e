"""Each epoch adds a loss term and keeps one tensor more than the one before."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
anchors = []
probe.start()
for i in range(probe.steps(150)):
    x = torch.randn(128, 256, device="cuda")
    y = model(x)
    loss = (y - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 15 == 14:
        for k in range(1 + i // 15):
            anchors.append(model(torch.randn(128, 256, device="cuda")).detach())  # LEAK ALLOC
    probe.step(i)
    if i in (49, 99, 149):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
