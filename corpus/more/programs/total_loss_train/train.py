"""`total_loss += loss` without item(), after backward: the graph's nodes stay, but on the GPU nothing does."""
import torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(512, 1024), nn.Tanh(), nn.Linear(1024, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
probe.start()
total_loss = 0
for i in range(probe.steps(200)):
    x = torch.randn(128, 512, device=device)
    y = torch.randint(0, 10, (128,), device=device)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total_loss += loss
    probe.step(i)
    if i in (66, 133, 199):
        probe.snap(f"step{i + 1}")
print("mean", total_loss.item() / 200)
probe.done(kind="none")
