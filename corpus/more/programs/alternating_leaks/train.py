"""Generator and discriminator take turns; the one keeps its fakes, the other its scores."""
import torch, probe
import torch.nn as nn

G = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
D = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
opt_g = torch.optim.Adam(G.parameters())
opt_d = torch.optim.Adam(D.parameters())
fakes, scores = [], []
probe.start()
for i in range(probe.steps(160)):
    z = torch.randn(128, 64, device="cuda")
    if i % 2:
        fake = G(z)  # ALLOC
        loss = D(fake).mean()
        opt_g.zero_grad()
        loss.backward()
        opt_g.step()
        fakes.append(fake.detach())  # LEAK
    else:
        real = torch.randn(128, 512, device="cuda")
        score = D(real)  # ALLOC
        loss = (D(G(z).detach()) - score).mean()
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
        scores.append(score.detach())  # LEAK
    probe.step(i)
    if i in (52, 105, 159):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
