"""Scratch buffers of ever more mixed sizes around long-lived crops of 1-3 MiB (a bounded set): reserved climbs away from allocated."""
import random, torch, probe

device = "cuda"
rng = random.Random(7)
crops = []
MiB = 1 << 20


def scratch(step):
    size = int(rng.uniform(4, 12 + step * 0.6) * MiB)
    return torch.empty(size, dtype=torch.uint8, device=device)


probe.start()
for i in range(probe.steps(160)):
    tiles = [scratch(i) for _ in range(6)]
    rng.shuffle(tiles)
    while tiles:
        tile = tiles.pop()
        if rng.random() < 0.4:
            crops.append(tile[: int(rng.uniform(1.1, 3.0) * MiB)].clone())
        del tile
    while len(crops) > 30:
        crops.pop(rng.randrange(len(crops)))
    probe.step(i)
    if i in (53, 106, 159):
        probe.snap(f"step{i + 1}")
probe.done(kind="fragmentation")
