"""Ten profiled steps of an autoencoder that files away its reconstructions."""
import os, torch, probe
import torch.nn as nn

device = "cuda"


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 24, 4, 2, 1), nn.ReLU(), nn.Conv2d(24, 48, 4, 2, 1))
        self.up = nn.Sequential(nn.ConvTranspose2d(48, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(24, 3, 4, 2, 1))

    def forward(self, x):
        z = self.down(x)
        return self.up(z)  # ALLOC


model = AutoEncoder().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
gallery = []
probe.start()
acts = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
with torch.profiler.profile(activities=acts, profile_memory=True, record_shapes=True, with_stack=True) as prof:
    for i in range(probe.steps(10)):
        x = torch.randn(8, 3, 64, 64, device=device)
        restored = model(x)
        loss = nn.functional.l1_loss(restored, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gallery.append(restored)  # LEAK
        probe.step(i)
        prof.step()
prof.export_chrome_trace("/tmp/trace_schedule.json")
probe.snap("step10")
probe.done(kind="python-list")
