"""The loss is summed over the epoch for one backward at its end; the graphs fill the capped device long before."""
import os, torch, probe
import torch.nn as nn

device = "cuda"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.norm = nn.BatchNorm2d(32)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = self.stem(x)  # ALLOC
        x = torch.relu(self.norm(x))  # ALLOC
        return self.head(x.mean((2, 3)))


def observer(device, alloc, device_alloc, device_free):
    torch.cuda.memory._dump_snapshot(os.path.join(probe.OUT, "oom.pickle"))


model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
probe.start()
torch._C._cuda_attach_out_of_memory_observer(observer)
epoch_loss = 0
try:
    for i in range(1000):
        images = torch.randn(8, 3, 128, 128, device=device)
        labels = torch.randint(0, 10, (8,), device=device)
        epoch_loss = epoch_loss + nn.functional.cross_entropy(model(images), labels)  # LEAK
        probe.step(i)
    epoch_loss.backward()
    optimizer.step()
except torch.OutOfMemoryError as e:
    open(os.path.join(probe.OUT, "oom.txt"), "w").write(str(e))
probe.done(kind="graph-retained")
