"""600 steps of a tiny model; one step in 40 keeps 8 KiB."""
import torch, probe
import torch.nn as nn

model = nn.Linear(32, 32).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
samples = []
probe.start()
for i in range(probe.steps(600)):
    x = torch.randn(64, 32, device="cuda")
    y = model(x)  # ALLOC
    loss = (y - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 40 == 17:
        samples.append(y.detach())  # LEAK
    probe.step(i)
    if i in (199, 399, 599):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
