"""Clean: features are collected in a dict and used and cleared at the end of each epoch of 25 steps."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
features = {}
probe.start()
for i in range(probe.steps(190)):
    x = torch.randn(256, 256, device="cuda")
    y = model(x)
    loss = nn.functional.mse_loss(y, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    features[i] = y.detach()
    if i % 25 == 24:
        torch.cat(list(features.values())).std().item()
        features.clear()
    probe.step(i)
    if i in (65, 128, 189):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
