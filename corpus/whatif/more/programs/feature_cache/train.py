"""A cache of features of all sizes with eviction, filled and read between bursts of large temporary products."""
import random
import measure
import torch

device = measure.device
measure.start()
rng, cache, held = random.Random(23), {}, 0
weight = torch.randn(1024, 1024, device=device)
for i in range(110):
    for _ in range(6):
        key = rng.randrange(400)
        if key not in cache:
            rows = int(64 * 2 ** (rng.random() * 6.5))
            cache[key] = torch.tanh(torch.randn(rows, 1024, device=device) @ weight)
        while sum(t.numel() * 4 for t in cache.values()) > 500 << 20:
            cache.pop(rng.choice(list(cache)))
    picked = torch.cat([cache[k] for k in rng.sample(list(cache), min(len(cache), 5))])
    scores = picked[: 1 + rng.randrange(6000)] @ picked[:5000].T
    scores.softmax(-1).amax()
    del picked, scores
    measure.step(i)
measure.done()
