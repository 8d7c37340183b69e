"""A teacher's logits are memoised per batch for distillation, in an expandable segment (see the runner's environment)."""
import torch, probe
import torch.nn as nn

device = "cuda"
teacher = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 4096)).to(device).eval()
student = nn.Sequential(nn.Linear(512, 256), nn.GELU(), nn.Linear(256, 4096)).to(device)
optimizer = torch.optim.AdamW(student.parameters(), fused=True)
memo = {}


def teach(key, x):
    if key not in memo:
        with torch.no_grad():
            memo[key] = teacher(x)  # LEAK ALLOC
    return memo[key]


probe.start()
for i in range(probe.steps(180)):
    x = torch.randn(64, 512, device=device)
    target = teach((0, i), x)
    loss = nn.functional.mse_loss(student(x), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (59, 119, 179):
        probe.snap(f"step{i + 1}")
probe.done(kind="unbounded-cache")
