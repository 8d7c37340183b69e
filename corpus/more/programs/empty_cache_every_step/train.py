"""Clean: empty_cache() after every step, lengths vary."""
import random, torch, probe
import torch.nn as nn

rng = random.Random(23)
model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
probe.start()
for i in range(probe.steps(80)):
    x = torch.randn(rng.randrange(100, 3000), 512, device="cuda")
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.empty_cache()
    probe.step(i)
    if i in (26, 53, 79):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
