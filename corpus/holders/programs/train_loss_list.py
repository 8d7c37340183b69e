"""losses.append(loss) after backward: the graph is gone, the tensor itself stays."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 1)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss(reduction="none")
losses = []


def train_step():
    images = torch.randn(4, 3, 256, 256, device=DEVICE)
    labels = torch.randint(0, 2, (4, 256, 256), device=DEVICE)
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.mean().backward()
    optimizer.step()
    losses.append(loss)


for i in range(30):
    train_step()
    step()
check()
