"""Pyramids of large pictures come and go; crops of some tens of MiB are cut from them and outlive them, each in a segment that was large."""
import random
import report
import torch
from torch import nn

device = report.device
report.begin()
report.record(max_entries=100_000)
rng = random.Random(83)
score, crops = nn.Linear(64, 1).to(device), []


@torch.no_grad()
def work():
    for i in range(70):
        side = rng.randrange(600, 1250)
        levels = [torch.rand(64, side, side, device=device)]
        for _ in range(2):
            levels.append(nn.functional.avg_pool2d(levels[-1], 2))
        part = rng.randrange(300, 520)
        crops.append(levels[0][:, :part, :part].contiguous())
        if len(crops) > 11:
            crops.pop(rng.randrange(len(crops)))
        for level in levels[1:]:
            score(level.flatten(1).T.contiguous()).sigmoid()
        del levels
        report.step(i)


try:
    work()
except torch.OutOfMemoryError as error:
    report.dump()
    report.done(error)
else:
    report.done()
