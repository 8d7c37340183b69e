"""Clean: 40 layers are made on the CPU, cast and moved one by one (with temporaries), then six requests are served."""
import torch, probe
import torch.nn as nn


def load(n, dim=512):
    layers = []
    for _ in range(n):
        layer = nn.Sequential(nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim)).to("cuda").half()
        with torch.no_grad():
            for p in layer.parameters():
                p.mul_(1 / p.abs().max())
        layers.append(layer)
    return nn.Sequential(*layers)


probe.start()
model = load(40)
probe.snap("loaded")
with torch.no_grad():
    for i in range(6):
        model(torch.randn(64, 512, device="cuda", dtype=torch.half)).argmax(-1).tolist()
        probe.step(i)
        if i in (2, 5):
            probe.snap(f"request{i + 1}")
probe.done(kind="none")
