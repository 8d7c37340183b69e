"""Validation without no_grad keeps every batch's graph through the loss list."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)).to(DEVICE)
criterion = nn.CrossEntropyLoss()
losses = []


def validate(images, labels):
    output = model(images)
    loss = criterion(output, labels)
    losses.append(loss)


for i in range(20):
    validate(torch.randn(4, 3, 64, 64, device=DEVICE), torch.randint(0, 10, (4,), device=DEVICE))
    step()
check()
