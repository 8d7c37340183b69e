"""A prefetcher copies the next batch on its own stream and hands it over with record_stream. Nothing leaks."""
import torch, probe
import torch.nn as nn

device = "cuda"


class Prefetcher:
    def __init__(self, batches):
        self.batches = iter(batches)
        self.stream = torch.cuda.Stream()
        self.preload()

    def preload(self):
        host = next(self.batches, None)
        with torch.cuda.stream(self.stream):
            self.ready = None if host is None else host.to(device, non_blocking=True)

    def __iter__(self):
        while self.ready is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            batch = self.ready
            batch.record_stream(torch.cuda.current_stream())
            self.preload()
            yield batch


model = nn.Sequential(nn.Linear(1024, 2048), nn.SiLU(), nn.Linear(2048, 1024)).to(device)
optimizer = torch.optim.Adagrad(model.parameters())
host = [torch.randn(512, 1024).pin_memory() for _ in range(4)]
probe.start(stacks="all")
for i, x in enumerate(Prefetcher(host[j % 4] for j in range(probe.steps(60)))):
    optimizer.zero_grad()
    (model(x) - x).abs().mean().backward()
    optimizer.step()
    probe.step(i)
    if i in (14, 59):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
