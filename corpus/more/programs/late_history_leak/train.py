"""History is switched on at step 50 of 150; the leak has been there from the start."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
embeddings = {}
for i in range(probe.steps(150)):
    if i == 50:
        probe.start()
    x = torch.randn(256, 256, device="cuda")
    y = model(x)  # ALLOC
    loss = nn.functional.mse_loss(y, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    embeddings[i] = y.detach()  # LEAK
    if i >= 50:
        probe.step(i)
    if i in (83, 116, 149):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-dict")
