"""A clean GAN: two networks, two optimizers, detach where it belongs."""
import torch, probe
import torch.nn as nn

device = "cuda"
generator = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1024), nn.Tanh()).to(device)
critic = nn.Sequential(nn.Linear(1024, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1)).to(device)
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)
opt_c = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True)
bce = nn.BCEWithLogitsLoss()
curves = {"g": [], "c": []}
probe.start()
for i in range(probe.steps(130)):
    real = torch.randn(64, 1024, device=device)
    fake = generator(torch.randn(64, 64, device=device))
    loss_c = bce(critic(real), torch.ones(64, 1, device=device)) + bce(critic(fake.detach()), torch.zeros(64, 1, device=device))
    opt_c.zero_grad()
    loss_c.backward()
    opt_c.step()
    loss_g = bce(critic(fake), torch.ones(64, 1, device=device))
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    curves["c"].append(loss_c.item())
    curves["g"].append(loss_g.item())
    probe.step(i)
    if i in (43, 86, 129):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
