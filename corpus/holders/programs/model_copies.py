"""A deep copy of the model after every round."""
import builtins
import copy
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
model = nn.Linear(512, 512, bias=False).to(DEVICE)
ensemble = []
for i in range(24):
    with torch.no_grad():
        model.weight.mul_(0.99)
    ensemble.append(copy.deepcopy(model))
    step()
check()
