"""Clean, recorded with stacks="all": dropout, checkpointing, a bounded buffer of 10."""
import collections, torch, probe
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

layers = nn.ModuleList([nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Dropout(0.1), nn.Linear(512, 256)) for _ in range(3)]).cuda()
optimizer = torch.optim.AdamW(layers.parameters())
last = collections.deque(maxlen=10)
probe.start(stacks="all")
for i in range(probe.steps(50)):
    x = target = torch.randn(64, 256, device="cuda")
    for layer in layers:
        x = checkpoint(layer, x, use_reentrant=False)
    loss = nn.functional.mse_loss(x, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    last.append(x.detach())
    probe.step(i)
    if i in (16, 33, 49):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
