"""Looks for a batch that fits: each failure is caught, memory is given back, and half the batch is tried, until a later epoch's longer texts fail for good."""
import gc
import random
import report
import torch
from torch import nn

device = report.device
report.begin()
report.record(max_entries=100_000)
rng, dim = random.Random(89), 512
net = nn.ModuleList([nn.TransformerEncoderLayer(dim, 8, 4 * dim, 0.0, batch_first=True) for _ in range(4)]).to(device)
optimizer = torch.optim.SGD(net.parameters(), 1e-3)


def epoch(batch, longest):
    for _ in range(5):
        x = torch.randn(batch, rng.randrange(longest // 2, longest), dim, device=device)
        for layer in net:
            x = layer(x)
        x.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        report.step(0)


def fitting(batch, longest):
    """The batch that fits, 0 if none does."""
    while batch >= 16:
        try:
            rng.seed(longest)
            epoch(batch, longest)
            return batch
        except torch.OutOfMemoryError:
            report.dump()
        batch //= 2
        optimizer.zero_grad(set_to_none=True)
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()
    return 0


batch = 64
for longest in (150, 200, 1600):
    batch = fitting(batch, longest)
    if not batch:
        break
report.done(None if batch else "no batch fits")
