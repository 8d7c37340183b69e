"""Clean by luck: a cache keyed by data_ptr(); the allocator hands out the same few addresses, so the entries are replaced."""
import random, torch, probe
import torch.nn as nn

rng = random.Random(3)
model = nn.Linear(512, 512).cuda()
masks = {}
probe.start()
with torch.no_grad():
    for i in range(probe.steps(180)):
        x = torch.randn(rng.choice((32, 64, 128, 192)), 512, device="cuda")
        masks[x.data_ptr()] = x > 0
        y = model(x) * masks[x.data_ptr()]
        y.sum().item()
        probe.step(i, cached=len(masks))
        if i in (59, 119, 179):
            probe.snap(f"step{i + 1}")
probe.done(kind="none")
