"""A caught exception stored in a local: the traceback holds the frame, the frame holds the activations."""
import gc, torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024)).to(device)


def guarded(x):
    error = None
    out = model(x)  # ALLOC
    try:
        if not torch.isinf(out).any():
            raise ValueError("no infinity found")
    except ValueError as e:
        error = e  # LEAK
    return error is None


probe.start()
gc.collect()
with torch.no_grad():
    for i in range(probe.steps(90)):
        guarded(torch.randn(300, 256, device=device))
        if (i + 1) % 30 == 0:
            gc.collect()
        probe.step(i)
        if i in (26, 28, 58, 89):
            probe.snap(f"step{i + 1}")
probe.done(kind="reference-cycle")
