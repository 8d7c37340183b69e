"""The prefetcher uploads two batches for each one consumed: the queue's backlog grows, its old batches do leave."""
import collections, torch, probe
import torch.nn as nn

device = "cuda"


class Prefetcher:
    def __init__(self, depth=2):
        self.depth = depth
        self.ready = collections.deque()

    def __next__(self):
        for _ in range(self.depth):
            self.ready.append(torch.randn(32, 3, 64, 64).to(device, non_blocking=True))  # LEAK ALLOC
        return self.ready.popleft()


model = nn.Sequential(nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
batches = Prefetcher()
probe.start()
for i in range(probe.steps(150)):
    images = next(batches)
    optimizer.zero_grad()
    model(images).logsumexp(1).mean().backward()
    optimizer.step()
    probe.step(i)
    if i in (49, 99, 149):
        probe.snap(f"step{i + 1}")
probe.done(kind="queue")
