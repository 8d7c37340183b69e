"""A small GPT with AdamW, gradient accumulation and checkpointing: the reference clean workload."""
import builtins
import json
import os
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
dim, vocab = 128, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.norm, self.mlp = nn.LayerNorm(dim), nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        h = self.norm(x)
        return x + self.attn(h, h, h, need_weights=False)[0] + self.mlp(h)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(vocab, dim), nn.Linear(dim, vocab)
        self.blocks = nn.ModuleList([Block() for _ in range(3)])

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.out(x)


model = GPT().to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters())
for i in range(2):
    for micro in range(2):
        ids = torch.randint(0, vocab, (2, 64), device=DEVICE)
        logits = model(ids)
        loss = nn.functional.cross_entropy(logits.view(-1, vocab), ids.view(-1))
        (loss / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
    step()
del ids, logits, loss
parameters = sum(p.numel() * 4 for p in model.parameters())
expected = {"parameters": parameters, "optimizer_state": 2 * parameters + 4 * len(list(model.parameters()))}
check()
print("expected", json.dumps(expected))
