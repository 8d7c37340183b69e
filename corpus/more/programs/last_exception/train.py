"""Clean: the handler remembers the last exception only (with its frames' tensors), one in seven batches fails."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()


class Service:
    last_error = None

    def handle(self, i):
        x = torch.randn(128, 512, device="cuda")
        h = model(x)
        if i % 7 == 2:
            raise ValueError("rejected")
        return h.mean().item()

    def __call__(self, i):
        try:
            return self.handle(i)
        except ValueError as e:
            self.last_error = e


service = Service()
probe.start()
with torch.no_grad():
    for i in range(probe.steps(180)):
        service(i)
        probe.step(i)
        if i in (59, 119, 179):
            probe.snap(f"step{i + 1}")
probe.done(kind="none")
