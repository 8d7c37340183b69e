"""A batch that is too large fails, is caught, and is tried again with half of it; from then on all goes well."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
batch = 65536
probe.start()
i = 0
while i < probe.steps(40):
    try:
        x = torch.randn(batch, 2048, device="cuda")
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    except torch.OutOfMemoryError:
        batch //= 2
        optimizer.zero_grad()
        x = loss = None
        torch.cuda.empty_cache()
        continue
    probe.step(i, batch=batch)
    i += 1
    if i in (12, 25, 40):
        probe.snap(f"step{i}")
probe.done(kind="oom-caught")
