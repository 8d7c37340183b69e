"""Generated samples of a diffusion-like loop are kept on the sampler; recorded with C++ stacks (stacks="all")."""
import torch, probe
import torch.nn as nn

device = "cuda"


class Sampler:
    def __init__(self, net, steps=4):
        self.net, self.steps = net, steps
        self.trajectory = []

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, 4, 64, 64, device=device)
        for t in range(self.steps):
            noise = self.net(x)
            x = x - noise / self.steps  # ALLOC
            self.trajectory.append(x)  # LEAK
        return x


net = nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 4, 3, padding=1)).to(device)
sampler = Sampler(net)
probe.start(stacks="all")
for i in range(probe.steps(60)):
    sampler.sample(4)
    probe.step(i)
    if i in (19, 39, 59):
        probe.snap(f"step{i + 1}")
probe.done(kind="object-list")
