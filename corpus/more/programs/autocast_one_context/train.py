"""A search over learning rates lives in one autocast context, whose cache keeps the half-precision weights of every trial's model."""
import torch, probe
import torch.nn as nn


def trial(lr, steps, first):
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()  # ALLOC
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for i in range(first, first + steps):
        x = torch.randn(128, 512, device="cuda")
        y = model(x)  # ALLOC
        loss = nn.functional.mse_loss(y.float(), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        probe.step(i)
        if i in (59, 119, 179):
            probe.snap(f"step{i + 1}")
    return loss.item()


probe.start()
with torch.autocast("cuda", dtype=torch.float16):  # LEAK
    scores = [trial(10 ** (-t / 10), 6, 6 * t) for t in range(30)]
probe.done(kind="autocast-cache")
