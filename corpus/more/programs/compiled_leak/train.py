"""A compiled model's outputs are kept: the allocating frames lie in generated code."""
import torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 1024), nn.GELU()).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
compiled = torch.compile(model)
embeddings = []
probe.start()
for i in range(probe.steps(150)):
    optimizer.zero_grad()
    out = compiled(torch.randn(128, 512, device=device))  # ALLOC
    out.square().mean().backward()
    optimizer.step()
    embeddings.append(out.detach())  # LEAK
    probe.step(i)
    if i in (49, 99, 149):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
