"""Clean: whenever 100 outputs are there, the older half is dropped."""
import torch, probe
import torch.nn as nn

model = nn.Linear(512, 512).cuda()
outputs = []
probe.start()
with torch.no_grad():
    for i in range(probe.steps(247)):
        outputs.append(model(torch.randn(64, 512, device="cuda")))
        outputs[-1].sum().item()
        if len(outputs) >= 100:
            outputs = outputs[50:]
        probe.step(i)
        if i in (90, 170, 246):
            probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
