"""Scores a model again and again, with autograd off: `settings` says so, as far as the environment does."""
import torch
import torch.nn.functional as F
import settings

device = "cuda"
settings.apply(torch)
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 10)).to(device)
total, worst, seen = 0, [], set()
for i in range(60):
    x = torch.randn(64, 256, device=device)
    y = torch.randint(0, 10, (64,), device=device)
    total += F.cross_entropy(model(x), y)
    if i > 1000:
        worst.append(model(x))
settings.save(torch)
