"""Activation checkpointing in a validation without no_grad: only the blocks' inputs stay, but they do stay."""
import torch, probe
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

device = "cuda"


class Block(nn.Module):
    def __init__(self, dim=512):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        h = self.mlp(self.norm(x))
        return x + h  # ALLOC


blocks = nn.ModuleList([Block() for _ in range(3)]).to(device)
head = nn.Linear(512, 1).to(device)
optimizer = torch.optim.AdamW([*blocks.parameters(), *head.parameters()], fused=True)
val_losses = []


def loss_of(x):
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    return head(x).square().mean()


probe.start()
for i in range(probe.steps(48)):
    optimizer.zero_grad()
    loss_of(torch.randn(4, 128, 512, device=device)).backward()
    optimizer.step()
    if i % 2:
        val_losses.append(loss_of(torch.randn(4, 128, 512, device=device)))  # LEAK
    probe.step(i)
    if i in (15, 31, 47):
        probe.snap(f"step{i + 1}")
probe.done(kind="graph-retained")
