"""Five tasks take turns, each with its head; one of them keeps its predictions."""
import torch, probe
import torch.nn as nn

trunk = nn.Linear(256, 512).cuda()
heads = nn.ModuleList([nn.Linear(512, 100 * (k + 1)) for k in range(5)]).cuda()
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()])
kept = []
probe.start()
for i in range(probe.steps(175)):
    task = i * 3 % 5
    x = torch.randn(128, 256, device="cuda")
    out = heads[task](torch.relu(trunk(x)))  # ALLOC
    loss = out.logsumexp(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if task == 3:
        kept.append(out.detach())  # LEAK
    probe.step(i)
    if i in (57, 115, 174):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
