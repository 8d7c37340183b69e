"""History is stopped before each snapshot and started again: the snapshots hold blocks with stacks, but no events."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept = []
probe.start()
for i in range(probe.steps(120)):
    x = torch.randn(256, 256, device="cuda")
    y = model(x)  # ALLOC
    loss = nn.functional.mse_loss(y, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(y.detach())  # LEAK
    probe.step(i)
    if i in (39, 79, 119):
        torch.cuda.memory._record_memory_history(enabled=None)
        probe.snap(f"step{i + 1}")
        torch.cuda.memory._record_memory_history(max_entries=400000, stacks="python")
probe.done(kind="python-list")
