"""A leak recorded with context=None: sizes are all there is."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept = []
probe.start(context=None)
for i in range(probe.steps(120)):
    x = torch.randn(96, 512, device="cuda")
    y = model(x)
    loss = nn.functional.mse_loss(y, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(y.detach()[:, :100].clone())  # LEAK
    probe.step(i)
    if i in (39, 79, 119):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
