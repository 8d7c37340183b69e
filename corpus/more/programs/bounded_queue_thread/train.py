"""Clean: a thread prepares batches on the GPU into a queue of at most 12."""
import queue, threading, torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batches = queue.Queue(12)
steps = probe.steps(200)


def produce():
    for i in range(steps + 12):
        x = torch.randn(128, 512, device="cuda")
        batches.put((x - x.mean()) / x.std())


probe.start()
threading.Thread(target=produce, daemon=True).start()
for i in range(steps):
    x = batches.get()
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (66, 133, 199):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
