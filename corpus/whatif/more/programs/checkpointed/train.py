"""Deep network with activation checkpointing and AdamW; the batch grows while it trains."""
import measure
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

device = measure.device
measure.start()
depth, dim = 12, 768
blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(depth)]).to(device)
optimizer = torch.optim.AdamW(blocks.parameters())
for i in range(24):
    x = torch.randn(512 + 384 * i, dim, device=device)
    y = x
    for n, block in enumerate(blocks):
        y = y + (checkpoint(block, y, use_reentrant=False) if n % 3 else block(y))
    (y - x).square().mean().backward()
    nn.utils.clip_grad_norm_(blocks.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    measure.step(i)
measure.done()
