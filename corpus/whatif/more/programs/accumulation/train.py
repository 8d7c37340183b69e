"""Gradient accumulation in bfloat16 with micro-batches of different shapes, a moving average of the weights and a norm clipped by hand."""
import random
import measure
import torch
from torch import nn

device = measure.device
measure.start()
rng = random.Random(17)
dim = 640
net = nn.Sequential(nn.Embedding(8000, dim), *[nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.SiLU(), nn.Linear(3 * dim, dim)) for _ in range(6)], nn.Linear(dim, 8000)).to(device)
average = {k: v.detach().clone() for k, v in net.state_dict().items()}
optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
for i in range(14):
    for _ in range(4):
        ids = torch.randint(0, 8000, (rng.randrange(2, 10), rng.randrange(64, 512)), device=device)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(net(ids).flatten(0, 1).float(), ids.flatten())
        (loss / 4).backward()
    norm = torch.cat([p.grad.flatten() for p in net.parameters()]).norm()
    for p in net.parameters():
        p.grad.mul_(1 / norm.clamp(min=1))
    optimizer.step()
    optimizer.zero_grad(set_to_none=i % 3 == 0)
    with torch.no_grad():
        for k, v in net.state_dict().items():
            average[k].lerp_(v, 0.1)
    measure.step(i)
measure.done()
