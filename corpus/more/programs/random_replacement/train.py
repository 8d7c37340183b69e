"""Clean: a cache of 60 that evicts at random; a new key comes at every step, so some entries are very old."""
import random, torch, probe

rng = random.Random(12)
cache = {}
projection = torch.randn(512, 256, device="cuda")
probe.start()
for i in range(probe.steps(260)):
    if len(cache) >= 60:
        del cache[rng.choice(list(cache))]
    cache[i] = torch.randn(256, 512, device="cuda")
    (cache[i] @ projection).softmax(-1).sum().item()
    probe.step(i)
    if i in (86, 173, 259):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
