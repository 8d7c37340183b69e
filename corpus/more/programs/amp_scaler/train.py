"""Clean: autocast and GradScaler; now and then an infinite gradient makes the scaler skip a step."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Dropout(0.1), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cuda", init_scale=2.0**16, growth_interval=20)
running = torch.zeros((), device="cuda")
probe.start()
for i in range(probe.steps(150)):
    x = torch.randn(128, 512, device="cuda")
    if i % 37 == 5:
        x[0] = 1e5
    with torch.autocast("cuda", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    running = 0.9 * running + 0.1 * loss.detach()
    probe.step(i)
    if i in (49, 99, 149):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
