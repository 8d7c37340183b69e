"""Clean: the rotary tables are made anew whenever a longer sequence comes, every 5th step; the old ones go."""
import torch, probe
import torch.nn as nn


class Rope(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.dim, self.cos, self.sin = dim, None, None

    def forward(self, x):
        if self.cos is None or x.shape[1] > self.cos.shape[0]:
            t = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)
            angle = torch.outer(t, 10000.0 ** (-torch.arange(0, self.dim, 2, device=x.device) / self.dim))
            angle = torch.cat([angle, angle], -1)
            self.cos, self.sin = angle.cos(), angle.sin()
        n = x.shape[1]
        return x * self.cos[:n] + x.roll(self.dim // 2, -1) * self.sin[:n]


rope, layer = Rope(), nn.Linear(128, 128).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
probe.start()
for i in range(probe.steps(160)):
    x = torch.randn(2, 256 + 32 * (i // 5), 128, device="cuda")
    loss = rope(layer(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (52, 105, 159):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
