"""Clean: outputs are gathered over an epoch and cleared at its end. All snapshots fall inside an epoch, the list half full."""
import torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


class Epoch:
    def __init__(self):
        self.outputs = []

    def training_step(self):
        x = torch.randn(128, 512, device=device)
        out = model(x)
        self.outputs.append(out.detach())
        return nn.functional.mse_loss(out, x)

    def on_epoch_end(self):
        spread = torch.cat(self.outputs).std().item()
        self.outputs.clear()
        return spread


loop = Epoch()
probe.start()
n = 0
for epoch in range(6):
    for _ in range(30):
        loss = loop.training_step()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        probe.step(n, epoch=epoch)
        n += 1
        if n in (50, 110, 175):
            probe.snap(f"step{n}")
    loop.on_epoch_end()
probe.done(kind="none")
