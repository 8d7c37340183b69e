"""Clean: torch.compile without dynamic shapes recompiles for each of six batch sizes."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
compiled = torch.compile(model, backend="aot_eager", dynamic=False)
probe.start()
for i in range(probe.steps(120)):
    x = torch.randn(32 * (1 + i // 20), 512, device="cuda")
    loss = nn.functional.mse_loss(compiled(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (39, 79, 119):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
