"""Nothing leaks: after thirty ordinary steps one validation batch is simply larger than the capped device."""
import os, torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(device)
optimizer = torch.optim.Adam(model.parameters(), fused=True)


def observer(device, alloc, device_alloc, device_free):
    torch.cuda.memory._dump_snapshot(os.path.join(probe.OUT, "oom.pickle"))


def train_step(images):
    loss = model(images).logsumexp(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


probe.start()
torch._C._cuda_attach_out_of_memory_observer(observer)
try:
    for i in range(40):
        train_step(torch.randn(16, 3, 64, 64, device=device))
        probe.step(i)
        if i == 29:
            model(torch.randn(4096, 3, 64, 64, device=device))
except torch.OutOfMemoryError as e:
    open(os.path.join(probe.OUT, "oom.txt"), "w").write(str(e))
probe.done(kind="oom")
