"""Clean multi-scale training: cudnn.benchmark tunes afresh when a resolution is first seen, the last one late in the run."""
import torch, probe
import torch.nn as nn

device = "cuda"
torch.backends.cudnn.benchmark = True
model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, stride=2, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
schedule = {0: [96], 25: [96, 128], 55: [96, 128, 160], 85: [96, 128, 160, 224]}
probe.start()
sizes = []
for i in range(probe.steps(110)):
    sizes = schedule.get(i, sizes)
    size = sizes[i * 7 % len(sizes)] if i not in schedule else sizes[-1]
    images = torch.randn(8, 3, size, size, device=device)
    labels = torch.randint(0, 10, (8,), device=device)
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i, size=size)
    if i in (36, 73, 109):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
