"""Clean: the three best of 20 evaluations are kept as copies on the GPU; the worst is dropped."""
import random, torch, probe
import torch.nn as nn

rng = random.Random(11)
model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
top = []
probe.start()
for i in range(probe.steps(240)):
    x = torch.randn(64, 512, device="cuda")
    loss = nn.functional.mse_loss(model(x), x.roll(1, -1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 12 == 11:
        score = i / 240 + rng.random()
        top.append((score, {k: v.detach().clone() for k, v in model.state_dict().items()}))
        top.sort(key=lambda t: -t[0])
        del top[3:]
    probe.step(i)
    if i in (79, 159, 239):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
