"""Clean: 24 experts are made when first routed to; the last few come late. Bounded by the number of experts."""
import random, torch, probe
import torch.nn as nn

rng = random.Random(21)


class MoE(nn.Module):
    def __init__(self, dim=512):
        super().__init__()
        self.dim, self.experts = dim, nn.ModuleDict()

    def forward(self, x, which):
        if which not in self.experts:
            self.experts[which] = nn.Linear(self.dim, self.dim, device=x.device)
        return torch.relu(self.experts[which](x))


model = MoE().cuda()
probe.start()
with torch.no_grad():
    for i in range(probe.steps(200)):
        x = torch.randn(64, 512, device="cuda")
        for _ in range(1 + i % 2):
            x = model(x, str(min(rng.randrange(24), rng.randrange(30))))
        x.sum().item()
        probe.step(i, experts=len(model.experts))
        if i in (66, 133, 199):
            probe.snap(f"step{i + 1}")
probe.done(kind="none")
