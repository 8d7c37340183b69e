"""Utterances sorted by duration, and a few embeddings that outlive them: reserved memory climbs and little of it is in use."""
import collections, random, torch, probe
import torch.nn as nn

device = "cuda"
encoder = nn.Sequential(nn.Conv1d(80, 384, 3, padding=1), nn.GELU(), nn.Conv1d(384, 384, 3, padding=1), nn.GELU(), nn.Conv1d(384, 384, 3, padding=1)).to(device)
optimizer = torch.optim.Adam(encoder.parameters())
bank = collections.deque(maxlen=10)
rng = random.Random(3)
durations = sorted(int(rng.lognormvariate(6.6, 0.6)) + 100 for _ in range(100))


def step(frames):
    mel = torch.randn(12, 80, frames, device=device)
    z = encoder(mel)
    z.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    bank.append(z[rng.randrange(12), :, : rng.randrange(50, 1 + frames)].detach().clone())


probe.start()
for i, frames in enumerate(durations):
    step(frames)
    probe.step(i, length=frames)
    if i in (24, 64, 99):
        probe.snap(f"step{i + 1}")
probe.done(kind="fragmentation")
