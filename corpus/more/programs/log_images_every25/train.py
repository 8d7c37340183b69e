"""A home-made image logger keeps originals beside reconstructions every 25 steps and flushes only 'later'."""
import torch, probe
import torch.nn as nn

device = "cuda"


class ImageLog:
    def __init__(self):
        self.pending = []

    def add(self, step, images, recon):
        grid = torch.cat([images, recon.detach()], dim=0)  # ALLOC
        self.pending.append((step, grid))  # LEAK


class AutoEncoder(nn.Module):
    def __init__(self, dim=3 * 64 * 64, hidden=512):
        super().__init__()
        self.enc = nn.Linear(dim, hidden)
        self.dec = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.dec(torch.relu(self.enc(x)))


model = AutoEncoder().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
log = ImageLog()
probe.start()
for step in range(probe.steps(250)):
    images = torch.rand(32, 3 * 64 * 64, device=device)
    recon = model(images)
    loss = nn.functional.mse_loss(recon, images)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        log.add(step, images, recon)
    probe.step(step)
    if step in (83, 166, 249):
        probe.snap(f"step{step + 1}")
probe.done(kind="object-list")
