"""Clean: each sample keeps its 25 intermediates for a video, which goes to the CPU at its end. Snapshots within samples."""
import torch, probe
import torch.nn as nn

net = nn.Sequential(nn.Conv2d(4, 64, 3, padding=1), nn.SiLU(), nn.Conv2d(64, 4, 3, padding=1)).cuda()
n = 0


@torch.no_grad()
def sample(timesteps):
    global n
    x = torch.randn(8, 4, 96, 96, device="cuda")
    intermediates = []
    for t in range(timesteps):
        eps = net(x)
        x = x - 0.1 * eps + 0.01 * torch.randn_like(x)
        intermediates.append(x)
        probe.step(n)
        n += 1
        if n in (65, 140, 217):
            probe.snap(f"step{n}")
    return torch.stack(intermediates).cpu()


probe.start()
for i in range(9):
    sample(25).mean()
probe.done(kind="none")
