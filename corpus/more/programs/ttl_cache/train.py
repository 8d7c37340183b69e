"""Clean: entries live for 40 steps; every 10 steps the dict is rebuilt without the expired ones."""
import torch, probe
import torch.nn as nn

model = nn.Linear(512, 512).cuda()
sessions = {}
probe.start()
with torch.no_grad():
    for i in range(probe.steps(220)):
        sessions[i] = (i, model(torch.randn(64, 512, device="cuda")))
        sessions[max(sessions.keys() - {i}, default=i)][1].sum().item()
        if i % 10 == 9:
            sessions = {k: v for k, v in sessions.items() if i - v[0] < 40}
        probe.step(i)
        if i in (73, 146, 219):
            probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
