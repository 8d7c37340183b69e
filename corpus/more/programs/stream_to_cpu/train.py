"""Clean: results wait on the GPU and go to the CPU one by one, oldest first, at the end of each shard of 22 batches."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 256)).cuda()
waiting, results = [], []
probe.start()
with torch.no_grad():
    for i in range(probe.steps(200)):
        waiting.append(model(torch.randn(128, 512, device="cuda")))
        if i % 22 == 21:
            while waiting:
                results.append(waiting.pop(0).cpu())
        probe.step(i)
        if i in (60, 127, 199):
            probe.snap(f"step{i + 1}")
probe.done(kind="none")
