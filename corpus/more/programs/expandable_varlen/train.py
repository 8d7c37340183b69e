"""Clean: batches of all lengths under expandable segments."""
import random, torch, probe
import torch.nn as nn

rng = random.Random(17)
model = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True).cuda()
optimizer = torch.optim.AdamW(model.parameters())
probe.start()
for i in range(probe.steps(120)):
    x = torch.randn(8, rng.randrange(32, 700), 256, device="cuda")
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (39, 79, 119):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
