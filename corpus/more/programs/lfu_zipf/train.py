"""Clean: an LFU cache of 40 under Zipf-like requests: the hot entries stay for ever, the cold ones come and go."""
import collections, random, torch, probe

rng = random.Random(14)
cache, uses = {}, collections.Counter()
projection = torch.randn(512, 256, device="cuda")


def lookup(key):
    uses[key] += 1
    if key not in cache:
        if len(cache) >= 40:
            del cache[min(cache, key=lambda k: uses[k])]
        cache[key] = torch.randn(128, 512, device="cuda")
    return cache[key]


probe.start()
for i in range(probe.steps(300)):
    key = int(rng.paretovariate(0.6)) % 5000
    (lookup(key) @ projection).softmax(-1).sum().item()
    probe.step(i, cached=len(cache))
    if i in (99, 199, 299):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
