"""Fine-tuning of small matrices beside frozen half-precision weights, norms with an optimizer of their own, and an evaluation every few steps."""
import random
import measure
import torch
from torch import nn

device = measure.device
measure.start()
rng, dim, words = random.Random(47), 768, 12000


class Adapted(nn.Module):
    def __init__(self, a, b, rank=16):
        super().__init__()
        self.base = nn.Linear(a, b).to(torch.bfloat16).requires_grad_(False)
        self.down, self.up = nn.Parameter(torch.randn(rank, a) / rank), nn.Parameter(torch.zeros(b, rank))

    def forward(self, x):
        return self.base(x) + (nn.functional.dropout(x, 0.05, self.training).float() @ self.down.T @ self.up.T).to(x.dtype)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out, self.wide, self.narrow = Adapted(dim, 3 * dim), Adapted(dim, dim), Adapted(dim, 4 * dim), Adapted(4 * dim, dim)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (12, -1)).transpose(1, 2) for part in self.qkv(self.one(x.float()).to(x.dtype)).chunk(3, -1))
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.narrow(nn.functional.silu(self.wide(self.two(x.float()).to(x.dtype))))


embed = nn.Embedding(words, dim).to(device, torch.bfloat16).requires_grad_(False)
layers = nn.ModuleList([Layer() for _ in range(5)]).to(device)
head = nn.Linear(dim, words).to(device, torch.bfloat16).requires_grad_(False)
norms = [p for n, p in layers.named_parameters() if "one" in n or "two" in n]
small = [p for n, p in layers.named_parameters() if n.endswith((".down", ".up"))]
optimizers = [torch.optim.AdamW(small, 1e-3), torch.optim.SGD(norms, 1e-3, momentum=0.9)]


def loss_of(batch, length):
    ids = torch.randint(0, words, (batch, length), device=device)
    x = embed(ids)
    for layer in layers:
        x = layer(x)
    return nn.functional.cross_entropy(head(x).float().flatten(0, 1), ids.flatten())


for i in range(20):
    loss_of(rng.randrange(2, 7), rng.randrange(80, 900)).backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    if i % 5 == 4:
        layers.eval()
        with torch.no_grad():
            scores = [loss_of(rng.randrange(6, 13), rng.randrange(200, 700)) for _ in range(3)]
        layers.train()
    measure.step(i)
measure.done()
