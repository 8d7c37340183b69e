"""Clips of different numbers of frames through a transformer over space and time; blocks are recomputed, each in one of two ways."""
import random
import measure
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

device = measure.device
measure.start()
rng, dim = random.Random(53), 320


class Block(nn.Module):
    def __init__(self, over_time):
        super().__init__()
        self.over_time, self.one, self.two = over_time, nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        y = self.one(x).transpose(1, 2) if self.over_time else self.one(x)
        q, k, v = (part.unflatten(-1, (5, -1)).transpose(2, 3).flatten(0, 1) for part in self.qkv(y).chunk(3, -1))
        seen = nn.functional.scaled_dot_product_attention(q, k, v).unflatten(0, y.shape[:2]).transpose(2, 3).flatten(3)
        x = x + self.out(seen.transpose(1, 2) if self.over_time else seen)
        return x + self.mlp(self.two(x))


patches = nn.Linear(3 * 16 * 16, dim).to(device)
blocks = nn.ModuleList([Block(n % 2 == 1) for n in range(8)]).to(device)
head = nn.Linear(dim, 400).to(device)
optimizer = torch.optim.AdamW([*patches.parameters(), *blocks.parameters(), *head.parameters()], foreach=False)
for i in range(22):
    clips, frames, side = rng.randrange(1, 4), rng.randrange(6, 40), rng.choice([8, 10, 12])
    pixels = torch.randn(clips, frames, 3, 16 * side, 16 * side, device=device)
    x = patches(pixels.unfold(3, 16, 16).unfold(4, 16, 16).permute(0, 1, 3, 4, 2, 5, 6).flatten(4).flatten(2, 3))
    del pixels
    for n, block in enumerate(blocks):
        x = block(x) if n in (0, 5) else checkpoint(block, x, use_reentrant=n % 3 == 0)
    nn.functional.cross_entropy(head(x.mean((1, 2))), torch.randint(0, 400, (clips,), device=device)).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    measure.step(i)
measure.done()
