"""Two phases of 18 steps take turns; only the first keeps its targets."""
import torch, probe
import torch.nn as nn

student = nn.Linear(512, 512).cuda()
teacher = nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(student.parameters(), lr=1e-3)
targets = []


def distill(x):
    with torch.no_grad():
        target = teacher(x)  # ALLOC
    targets.append(target)  # LEAK
    return (student(x) - target).square().mean()


def supervise(x):
    return (student(x) - x).square().mean()


probe.start()
for i in range(probe.steps(216)):
    x = torch.randn(128, 512, device="cuda")
    loss = distill(x) if i // 18 % 2 == 0 else supervise(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (71, 143, 215):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
