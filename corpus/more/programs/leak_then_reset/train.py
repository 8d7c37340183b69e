"""Clean at the end: debug outputs pile up for 90 of 220 steps, then debugging is switched off and the list is emptied."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
debug, trace = True, []
probe.start()
for i in range(probe.steps(220)):
    x = torch.randn(128, 512, device="cuda")
    y = model(x)
    loss = (y - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if debug:
        trace.append(y.detach())
    if i == 90:
        debug, trace = False, []
    probe.step(i)
    if i in (109, 164, 219):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
