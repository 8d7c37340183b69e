"""Each epoch builds a fresh AdamW, and the old ones (with their two moments per weight) stay in a list."""
import torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(768, 2048), nn.ReLU(), nn.Linear(2048, 768)).to(device)
optimizers = []


def train_epoch(lr, first):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, fused=True)
    optimizers.append(optimizer)  # LEAK
    for j in range(20):
        x = torch.randn(64, 768, device=device)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), x).backward()
        optimizer.step()  # ALLOC
        probe.step(first + j)


probe.start()
for epoch in range(9):
    train_epoch(1e-3 / (epoch + 1), 20 * epoch)
    if epoch in (2, 5, 8):
        probe.snap(f"step{20 * epoch + 20}")
probe.done(kind="optimizer-state")
