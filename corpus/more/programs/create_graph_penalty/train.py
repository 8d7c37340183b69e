"""A critic with gradient penalty keeps each step's input gradients, made by the backward thread without Python frames."""
import torch, probe
import torch.nn as nn

device = "cuda"
critic = nn.Sequential(nn.Linear(3072, 512), nn.SiLU(), nn.Linear(512, 1)).to(device)
optimizer = torch.optim.RMSprop(critic.parameters(), lr=1e-4)
penalties = []
probe.start()
for i in range(probe.steps(100)):
    real = torch.randn(64, 3072, device=device)
    fake = torch.rand(64, 3072, device=device)
    mixed = torch.lerp(real, fake, torch.rand(64, 1, device=device)).requires_grad_()
    (gradient,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    penalty = (gradient.norm(2, dim=1) - 1).square().mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    penalties.append(gradient)  # LEAK
    probe.step(i)
    if i in (33, 66, 99):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
