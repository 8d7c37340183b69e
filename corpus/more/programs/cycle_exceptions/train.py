"""A local variable keeps the exception that its own frame's traceback belongs to: a cycle until gc.collect() every 30 steps."""
import gc, torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Linear(1024, 1024).to(device)


def robust_forward(i):
    error = None
    x = torch.randn(512, 1024, device=device)  # ALLOC
    try:
        y = model(x)  # ALLOC
        if i % 2:
            raise RuntimeError("solver did not converge")
    except RuntimeError as e:
        error = e  # LEAK
    return error is None


probe.start()
gc.collect()
good = 0
with torch.no_grad():
    for i in range(probe.steps(200)):
        good += robust_forward(i)
        if i % 30 == 29:
            gc.collect()
        probe.step(i)
        if i in (66, 133, 199):
            probe.snap(f"step{i + 1}")
probe.done(kind="reference-cycle")
