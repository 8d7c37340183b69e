"""torch.save(memory_snapshot()) every forty steps and no history at all."""
import os, torch, probe
import torch.nn as nn

device = "cuda"
net = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768)).to(device)
optimizer = torch.optim.AdamW(net.parameters())
codes = []


def train(x):
    optimizer.zero_grad()
    y = net(x)
    nn.functional.mse_loss(y, x).backward()
    optimizer.step()
    return y.detach()


probe.start(history=False)
for i in range(81):
    codes.append(train(torch.randn(96, 768, device=device)))  # LEAK
    probe.step(i)
    if i % 40 == 0:
        torch.save(torch.cuda.memory_snapshot(), os.path.join(probe.OUT, f"snapshot_{i}.pt"))
probe.done(kind="python-list")
