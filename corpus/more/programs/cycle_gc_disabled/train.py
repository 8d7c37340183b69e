"""gc.disable() 'for speed', and every step makes a cycle: it is never collected."""
import gc, torch, probe
import torch.nn as nn


class Step:
    def __init__(self, model):
        self.model = model
        self.callbacks = [self.log]  # LEAK

    def run(self, x):
        self.out = self.model(x)  # ALLOC
        for callback in self.callbacks:
            callback()
        return self.out.sum().item()

    def log(self):
        return self.out.std()


model = nn.Linear(512, 512).cuda()
gc.disable()
probe.start()
with torch.no_grad():
    for i in range(probe.steps(150)):
        Step(model).run(torch.randn(128, 512, device="cuda"))
        probe.step(i)
        if i in (49, 99, 149):
            probe.snap(f"step{i + 1}")
probe.done(kind="reference-cycle-uncollected")
