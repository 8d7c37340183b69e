"""The recording begins after the model is built and a warm-up has left free blocks behind; early tensors die while it runs."""
import random
import measure
import torch
from torch import nn

device = measure.device
measure.begin()
rng = random.Random(13)
lstm = nn.LSTM(256, 1024, 2, batch_first=True).to(device)
head = nn.Linear(1024, 5000).to(device)
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
lookup = [torch.randn(rng.randrange(50, 900), 1024, device=device) for _ in range(40)]


def train(length):
    x = torch.randn(16, length, 256, device=device)
    loss = nn.functional.cross_entropy(head(lstm(x)[0]).flatten(0, 1), torch.randint(0, 5000, (16 * length,), device=device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


for i in range(5):
    train(rng.randrange(100, 400))
    measure.step(i)
measure.record()
for i in range(5, 35):
    train(rng.randrange(50, 700))
    lookup.pop(rng.randrange(len(lookup)))
    if i % 2:
        lookup.append(torch.randn(rng.randrange(50, 2500), 1024, device=device))
    measure.step(i)
measure.done()
