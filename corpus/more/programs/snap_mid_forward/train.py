"""Clean: snapshots are taken in the middle of the forward pass, by a hook on the sixth of nine blocks."""
import torch, probe
import torch.nn as nn

blocks = [nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512)) for _ in range(9)]
model = nn.Sequential(*blocks).cuda()
optimizer = torch.optim.AdamW(model.parameters())
now = 0


def hook(module, args, output):
    if now in (19, 39, 59):
        probe.snap(f"step{now + 1}")


model[5].register_forward_hook(hook)
probe.start()
for now in range(probe.steps(60)):
    x = torch.randn(128, 512, device="cuda")
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(now)
probe.done(kind="none")
