"""Requests run in a thread pool; the list of futures keeps all results."""
import concurrent.futures as cf
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()


@torch.no_grad()
def infer(i):
    x = torch.randn(64, 512, device="cuda")
    return torch.sigmoid(model(x))  # ALLOC


pool = cf.ThreadPoolExecutor(3)
futures = []
probe.start()
for i in range(probe.steps(100)):
    new = [pool.submit(infer, i) for _ in range(2)]
    futures += new  # LEAK
    sum(f.result().mean().item() for f in new)
    probe.step(i)
    if i in (32, 65, 99):
        probe.snap(f"step{i + 1}")
probe.done(kind="futures")
