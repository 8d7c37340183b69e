"""Clean: twelve steps recorded from the very start, an evaluation at steps 6 and 12."""
import torch, probe
import torch.nn as nn

probe.start()
model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.LayerNorm(512), nn.GELU()) for _ in range(6)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for i in range(probe.steps(12)):
    x = torch.randn(64, 512, device="cuda")
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i in (5, 11):
        with torch.no_grad():
            torch.cat([model(torch.randn(64, 512, device="cuda")) for _ in range(5)]).mean().item()
    probe.step(i)
    if i in (3, 7, 11):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
