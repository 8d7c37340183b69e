"""Clean: retain_graph=True, and the last loss with its whole graph is remembered; only ever one."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
history = {"last": None, "best": None}
probe.start()
for i in range(probe.steps(120)):
    x = torch.randn(128, 256, device="cuda")
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    history["last"] = loss
    if history["best"] is None or loss.item() < history["best"].item():
        history["best"] = loss
    probe.step(i)
    if i in (39, 79, 119):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
