"""The famous losses.append(loss): scalars only, since backward freed the graph."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
losses = []


def train_step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(8, 64, device=DEVICE)), torch.zeros(8, dtype=torch.long, device=DEVICE))
    loss.backward()
    optimizer.step()
    losses.append(loss)


for i in range(200):
    train_step()
    step()
check()
