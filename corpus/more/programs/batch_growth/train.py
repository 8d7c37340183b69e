"""Clean: the batch doubles every 30 steps instead of decaying the learning rate. The working set grows, nothing stays."""
import torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 100)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
batch = 128
probe.start()
for i in range(probe.steps(180)):
    if i and i % 30 == 0:
        batch *= 2
    x = torch.randn(batch, 1024, device=device)
    y = torch.randint(0, 100, (batch,), device=device)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i, batch=batch)
    if i in (59, 119, 179):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
