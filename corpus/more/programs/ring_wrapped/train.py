"""The history is a ring of 2000 entries that wrapped long ago: most leaked blocks have no birth on record."""
import torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
outputs = []
probe.start(max_entries=2000)
for i in range(probe.steps(200)):
    x = torch.randn(256, 512, device=device)
    out = model(x)  # ALLOC
    loss = (out - x).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    outputs.append(out.detach())  # LEAK
    probe.step(i)
    if i in (66, 133, 199):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
