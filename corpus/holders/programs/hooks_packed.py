"""Offloading hooks pack activations; the losses keep the packed ones."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
unpacked = 0


class Parcel:
    def __init__(self, tensor):
        self.device = tensor.device
        self.content = tensor.clone()


def unpack(parcel):
    global unpacked
    unpacked += 1
    return parcel.content.to(parcel.device)


weight = nn.Parameter(torch.randn(1024, 1024, device=DEVICE) / 32)
losses = []
with torch.autograd.graph.saved_tensors_hooks(Parcel, unpack):
    for i in range(20):
        losses.append((torch.randn(256, 1024, device=DEVICE) * weight[0]).sigmoid().sum())
        step()
check()
assert unpacked == 0, "somebody ran the unpack hook"
