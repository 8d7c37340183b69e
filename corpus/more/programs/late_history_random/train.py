"""Clean: history begins at step 300, with a cache of 150 (random replacement) long full; 150 steps are recorded."""
import random, torch, probe

rng = random.Random(31)
cache = {}
projection = torch.randn(512, 256, device="cuda")


def fill(i):
    if len(cache) >= 150:
        del cache[rng.choice(list(cache))]
    cache[i] = torch.randn(128, 512, device="cuda")
    return cache[i]


for i in range(probe.steps(450)):
    if i == 300:
        probe.start()
    scores = fill(i) @ projection
    scores.softmax(-1).sum().item()
    if i >= 300:
        probe.step(i)
    if i in (349, 399, 449):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
