"""Crops of all sizes from 1 KiB to 4 MiB are kept; other crops of the same line are dropped."""
import random, torch, probe

rng = random.Random(9)
kept = []
probe.start()
image = torch.randn(3, 1024, 1024, device="cuda")
kernel = torch.randn(3, 3, 3, 3, device="cuda")


def crop():
    h, w = int(2 ** rng.uniform(4, 9.2)), int(2 ** rng.uniform(4, 9.2))
    y, x = rng.randrange(1024 - h), rng.randrange(1024 - w)
    return image[:, y : y + h, x : x + w].clone()  # ALLOC


for i in range(probe.steps(180)):
    crops = [crop() for _ in range(5)]
    for c in crops:
        torch.nn.functional.conv2d(c[None], kernel).sum()
    kept.append(max(crops, key=lambda c: c.shape[-1]) if i % 2 else crops[0])  # LEAK
    probe.step(i)
    if i in (59, 119, 179):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
