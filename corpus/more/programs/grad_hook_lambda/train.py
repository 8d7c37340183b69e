"""A hook on the weights keeps each gradient for a histogram: born in the backward thread, without Python frames."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
histograms = {}
for name, p in model.named_parameters():
    p.register_hook(lambda g, name=name: histograms.setdefault(name, []).append(g))  # LEAK
probe.start()
for i in range(probe.steps(120)):
    x = torch.randn(64, 512, device="cuda")
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (39, 79, 119):
        probe.snap(f"step{i + 1}")
probe.done(kind="backward-hook")
