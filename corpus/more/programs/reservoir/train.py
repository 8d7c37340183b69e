"""Clean: a reservoir sample of 64 batches: full at step 64 of 260, replaced at random and ever more rarely."""
import random, torch, probe
import torch.nn as nn

rng = random.Random(15)
model = nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
reservoir = []
probe.start()
for i in range(probe.steps(260)):
    x = torch.randn(128, 256, device="cuda")
    if len(reservoir) < 64:
        reservoir.append(x)
    elif (j := rng.randrange(i + 1)) < 64:
        reservoir[j] = x
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (86, 173, 259):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
