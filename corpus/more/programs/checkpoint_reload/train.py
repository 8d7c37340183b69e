"""Clean: training diverges twice and goes back to a checkpoint. New weights and moments come, the old ones go."""
import os, tempfile, torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
path = os.path.join(tempfile.mkdtemp(), "last.pt")


def save():
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


def restore():
    state = torch.load(path, map_location=device)
    model.load_state_dict(state["model"], assign=True)
    optimizer.param_groups[0]["params"][:] = model.parameters()
    optimizer.load_state_dict(state["optimizer"])


probe.start()
for i in range(probe.steps(150)):
    x = torch.randn(64, 768, device=device)
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i == 30:
        save()
    if i in (60, 115):
        restore()
    probe.step(i)
    if i in (49, 99, 149):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
