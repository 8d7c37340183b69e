"""Clean: a model of 36 layers is moved to the GPU in one go, under record, and then serves 15 requests."""
import torch, probe
import torch.nn as nn

probe.start()
model = nn.Sequential(*[nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)) for _ in range(36)])
model = model.to("cuda").eval()
with torch.no_grad():
    for i in range(probe.steps(15)):
        x = torch.randn(64, 512, device="cuda")
        model(x).argmax(-1).tolist()
        probe.step(i)
        if i in (4, 9, 14):
            probe.snap(f"step{i + 1}")
probe.done(kind="none")
