"""`total += loss` keeps every step's graph. The recording begins when the model is there, as tutorials show it; an observer takes the snapshot."""
import random
import report
import torch
from torch import nn

device = report.device
report.begin()
rng = random.Random(73)
net = nn.Sequential(nn.Linear(256, 1536), nn.ReLU(), nn.Linear(1536, 1536), nn.ReLU(), nn.Linear(1536, 1536), nn.ReLU(), nn.Linear(1536, 100)).to(device)
optimizer = torch.optim.Adam(net.parameters())
report.record(max_entries=100_000)
if report.recording and device == "cuda":
    torch._C._cuda_attach_out_of_memory_observer(lambda *_: report.dump())


def train():
    total = 0.0
    for i in range(70):
        x = torch.randn(rng.randrange(800, 4000), 256, device=device)
        loss = nn.functional.cross_entropy(net(x), torch.randint(0, 100, (len(x),), device=device))
        optimizer.zero_grad(set_to_none=True)
        loss.backward(retain_graph=True)
        optimizer.step()
        total = total + loss
        report.step(i)
    return total


try:
    train()
except torch.OutOfMemoryError as error:
    report.done(error)
else:
    report.done()
