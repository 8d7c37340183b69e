"""A GAN keeps both of its losses for a plot: two scalars a step."""
import torch, probe
import torch.nn as nn

device = "cuda"
latent = 64
generator = nn.Sequential(nn.Linear(latent, 256), nn.ReLU(), nn.Linear(256, 784), nn.Tanh()).to(device)
critic = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1)).to(device)
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
history = {"d": [], "g": []}
ones, zeros = torch.ones(64, 1, device=device), torch.zeros(64, 1, device=device)

probe.start()
for i in range(probe.steps(90)):
    real = torch.rand(64, 784, device=device) * 2 - 1
    fake = generator(torch.randn(64, latent, device=device))

    d_loss = bce(critic(real), ones) + bce(critic(fake.detach()), zeros)  # ALLOC
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

    g_loss = bce(critic(fake), ones)  # ALLOC
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()

    history["d"].append(d_loss)  # LEAK
    history["g"].append(g_loss)  # LEAK
    probe.step(i)
    if i in (29, 59, 89):
        probe.snap(f"step{i + 1}")
probe.done(kind="scalar-retained")
