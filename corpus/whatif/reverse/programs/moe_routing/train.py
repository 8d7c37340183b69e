"""A mixture of experts: each token goes to two of eight, and which are liked drifts, so every expert's load changes from step to step."""
import random
import measure
import torch
from torch import nn

device = measure.device
measure.start()
rng, chance = random.Random(37), torch.Generator().manual_seed(37)
dim, experts = 512, 8


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.weigh = nn.LayerNorm(dim), nn.Linear(dim, experts)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(experts)])

    def forward(self, x, liking):
        flat = self.norm(x)
        weight = self.weigh(flat).softmax(-1)
        chosen = torch.multinomial(liking.expand(len(flat), -1), 2, generator=chance)  # on the host: the loads are the same in every run
        out = torch.zeros_like(flat)
        for n, expert in enumerate(self.experts):
            rows = (chosen == n).any(-1).nonzero().flatten().to(device)
            if len(rows):
                out = out.index_add(0, rows, expert(flat[rows]) * weight[rows, n, None])
        return x + out


embed, head = nn.Embedding(12000, dim).to(device), nn.Linear(dim, 12000).to(device)
layers = nn.ModuleList([Mixture() for _ in range(3)]).to(device)
parameters = [*embed.parameters(), *layers.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters, foreach=False)
liking = torch.ones(experts)
for i in range(16):
    liking = (liking * torch.exp(0.5 * torch.randn(experts, generator=chance))).clamp(0.02, 20)
    ids = torch.randint(0, 12000, (rng.randrange(1500, 7000),), device=device)
    x = embed(ids)
    for layer in layers:
        x = layer(x, liking)
    nn.functional.cross_entropy(head(x), ids).backward()
    nn.utils.clip_grad_norm_(parameters, 1.0, foreach=False)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    measure.step(i)
measure.done()
