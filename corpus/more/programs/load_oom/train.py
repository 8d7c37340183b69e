"""A model that is too large for the device: loading fails at some layer."""
import torch, probe
import torch.nn as nn

probe.start()
layers = []
try:
    for i in range(200):
        layers.append(nn.Linear(4096, 4096, device="cuda"))
        probe.step(i)
        if i in (12, 25):
            probe.snap(f"layer{i + 1}")
except torch.OutOfMemoryError:
    probe.snap("oom")
probe.done(kind="oom")
