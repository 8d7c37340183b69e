"""Clean: a cache of 150 that evicts at random, full at step 150 of 240."""
import random, torch, probe

rng = random.Random(13)
cache = {}
projection = torch.randn(512, 256, device="cuda")
probe.start()
for i in range(probe.steps(240)):
    if len(cache) >= 150:
        del cache[rng.choice(list(cache))]
    cache[i] = torch.randn(128, 512, device="cuda")
    (cache[i] @ projection).softmax(-1).sum().item()
    probe.step(i)
    if i in (79, 159, 239):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
