"""Attention maps are gathered by a hook; recorded with context="alloc", so only allocations carry stacks."""
import torch, probe
import torch.nn as nn

device = "cuda"


class Attention(nn.Module):
    def __init__(self, dim=256, heads=4):
        super().__init__()
        self.heads = heads
        self.qk, self.v = nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k = self.qk(x).view(b, t, 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        v = self.v(x).view(b, t, self.heads, -1).transpose(1, 2)
        self.weights = torch.softmax(q @ k.transpose(-1, -2) / 8, dim=-1)  # ALLOC
        return x + (self.weights @ v).transpose(1, 2).reshape(b, t, d)


maps = []
model = nn.Sequential(Attention(), Attention()).to(device).eval()
for layer in model:
    layer.register_forward_hook(lambda module, args, out: maps.append(module.weights))  # LEAK
probe.start(context="alloc")
with torch.no_grad():
    for i in range(probe.steps(150)):
        model(torch.randn(2, 128, 256, device=device))
        probe.step(i)
        if i in (49, 99, 149):
            probe.snap(f"step{i + 1}")
probe.done(kind="hook")
