"""Clean: outputs are collected for 20 steps, dropped, then gc.collect() and empty_cache() by habit; there are no cycles."""
import gc, torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def epoch(first):
    outputs = []
    for i in range(first, first + 20):
        x = torch.randn(256, 256, device="cuda")
        y = model(x)
        loss = nn.functional.mse_loss(y, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        outputs.append({"y": y.detach(), "loss": loss.detach()})
        probe.step(i)
        if i in (50, 113, 175):
            probe.snap(f"step{i + 1}")
    torch.stack([o["loss"] for o in outputs]).mean().item()


probe.start()
for e in range(9):
    epoch(20 * e)
    gc.collect()
    torch.cuda.empty_cache()
probe.done(kind="none")
