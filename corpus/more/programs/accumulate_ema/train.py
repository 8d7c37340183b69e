"""Gradient accumulation over four batches with an averaged copy of the weights: clean, though gradients come and go."""
import copy, torch, probe
import torch.nn as nn

device = "cuda"
accumulate = 4


def build():
    layer = nn.TransformerEncoderLayer(192, 6, 768, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Linear(40, 192), nn.TransformerEncoder(layer, 3), nn.Linear(192, 40))


model = build().to(device)
ema = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15)


@torch.no_grad()
def average(decay=0.99):
    for slow, fast in zip(ema.parameters(), model.parameters()):
        slow.lerp_(fast, 1 - decay)


probe.start()
running = torch.zeros((), device=device)
for i in range(probe.steps(60)):
    x = torch.randn(16, 100, 40, device=device)
    loss = nn.functional.mse_loss(model(x), x) / accumulate
    loss.backward()
    running += loss.detach()
    if i % accumulate == accumulate - 1:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        average()
    probe.step(i)
    if i in (9, 34, 59):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
