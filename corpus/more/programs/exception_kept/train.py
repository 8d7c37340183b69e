"""Bad batches raise; the exceptions are collected for a summary, and their tracebacks keep the frames' tensors."""
import torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(1024, 2048), nn.SiLU(), nn.Linear(2048, 1024)).to(device)


class BadBatch(ValueError):
    pass


def load(i):
    batch = torch.randn(256, 1024)
    if i % 6 == 4:
        batch[3, 5] = float("nan")
    return batch


@torch.no_grad()
def process(i):
    x = load(i).to(device)  # ALLOC
    h = model(x)  # ALLOC
    score = h.square().mean().item()
    if score != score:
        raise BadBatch(f"batch {i} is not finite")
    return score


failures = []
total = 0.0
probe.start()
for i in range(probe.steps(240)):
    try:
        total += process(i)
    except BadBatch as e:
        failures.append(e)  # LEAK
    probe.step(i)
    if i in (79, 159, 239):
        probe.snap(f"step{i + 1}")
probe.done(kind="traceback")
