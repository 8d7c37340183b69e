"""All goes well until the first step of the optimizer makes its state: the device, nearly full of others' memory, has no room for it."""
import report
import torch
from torch import nn

device = report.device
report.begin()
report.record()
blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(1280), nn.Linear(1280, 5120), nn.GELU(), nn.Linear(5120, 1280)) for _ in range(8)]).to(device)
head = nn.Linear(1280, 9000).to(device)
optimizer = torch.optim.AdamW([*blocks.parameters(), *head.parameters()], 1e-4)


def train():
    for i in range(4):
        for _ in range(3):
            ids = torch.randint(0, 9000, (1500,), device=device)
            x = torch.randn(1500, 1280, device=device)
            for block in blocks:
                x = x + block(x)
            (nn.functional.cross_entropy(head(x), ids) / 3).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        report.step(i)


try:
    train()
except torch.OutOfMemoryError as error:
    report.dump()
    report.done(error)
else:
    report.done()
