"""Predictions for a metric, without no_grad or detach."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 1)).to(DEVICE).eval()
preds, labels = [], []
for i in range(20):
    preds.append(model(torch.randn(256, 256, device=DEVICE)))
    labels.append(i % 2)
    step()
check()
