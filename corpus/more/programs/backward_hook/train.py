"""Gradient debugging: full backward hooks keep a copy of every output gradient."""
import torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
    nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)).to(device)
optimizer = torch.optim.RMSprop(model.parameters())
gradients = {}


def watch(module, grad_input, grad_output):
    gradients.setdefault(module, []).append(grad_output[0].clone())  # LEAK ALLOC


for layer in model:
    if isinstance(layer, nn.Conv2d):
        layer.register_full_backward_hook(watch)

probe.start()
for i in range(probe.steps(60)):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 3, 64, 64, device=device)).logsumexp(1).mean()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (9, 29, 59):
        probe.snap(f"step{i + 1}")
probe.done(kind="hook")
