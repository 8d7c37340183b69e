"""Clean: nothing but the loading of a model, layer by layer; three snapshots on the way. No loop that could leak."""
import torch, probe
import torch.nn as nn


def make_layer(dim=512):
    return nn.TransformerEncoderLayer(dim, 8, 4 * dim, batch_first=True)


def load(n):
    layers = nn.ModuleList()
    for i in range(n):
        layer = make_layer()
        layers.append(layer.to("cuda"))
        probe.step(i)
        if i in (13, 26, 39):
            probe.snap(f"layer{i + 1}")
    return layers


probe.start()
model = load(40)
probe.done(kind="none")
