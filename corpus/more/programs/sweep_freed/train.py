"""Clean: nine trials with models of different widths; each is gone when the next begins. Snapshots within trials."""
import torch, probe
import torch.nn as nn


def trial(width, lr, first):
    model = nn.Sequential(nn.Linear(256, width), nn.GELU(), nn.Linear(width, 256)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    losses = []
    for i in range(first, first + 16):
        x = torch.randn(128, 256, device="cuda")
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        probe.step(i)
        if i in (41, 90, 140):
            probe.snap(f"step{i + 1}")
    return torch.stack(losses).min().item()


probe.start()
results = {(w, t): trial(w, 10.0 ** -(t % 4), 16 * t) for t, w in enumerate((256, 512, 1024, 384, 2048, 768, 640, 1536, 896))}
probe.done(kind="none")
