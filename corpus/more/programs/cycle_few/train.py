"""Every 15th step makes one large object that refers to itself; automatic collection is off, gc.collect() every 60 steps frees four at a time."""
import gc, torch, probe
import torch.nn as nn


class Report:
    def __init__(self, data):
        self.data = data
        self.render = self.draw  # LEAK

    def draw(self):
        return self.data.mean().item()


model = nn.Linear(512, 512).cuda()
gc.disable()
probe.start()
with torch.no_grad():
    for i in range(probe.steps(270)):
        y = model(torch.randn(128, 512, device="cuda"))
        if i % 15 == 7:
            report = Report(torch.nn.functional.interpolate(y[None, None], scale_factor=4))  # ALLOC
            report.render()
            del report
        if i % 60 == 59:
            gc.collect()
        probe.step(i)
        if i in (89, 179, 269):
            probe.snap(f"step{i + 1}")
probe.done(kind="reference-cycle")
