"""Ten steps, recorded in one piece with the model's set-up; every step keeps its logits' graph."""
import torch, probe
import torch.nn as nn

probe.start()
model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
logs = []
for i in range(probe.steps(10)):
    x = torch.randn(256, 1024, device="cuda")
    y = model(x)  # ALLOC
    logs.append(y.square().mean())  # LEAK
    probe.step(i)
    if i in (3, 6, 9):
        probe.snap(f"step{i + 1}")
probe.done(kind="graph-in-list")
