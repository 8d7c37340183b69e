"""A background thread normalises features off the training loop's path and archives every one of them."""
import queue, threading, torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
inbox = queue.Queue()


class Archiver(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.items = []

    def run(self):
        while True:
            features = inbox.get()
            if features is not None:
                centred = features - features.mean(0)
                self.items.append(centred / (centred.std(0) + 1e-6))  # LEAK ALLOC
            inbox.task_done()


archiver = Archiver()
archiver.start()
probe.start()
for i in range(probe.steps(180)):
    x = torch.randn(256, 512, device=device)
    out = model(x)
    loss = (out - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    inbox.put(out.detach())
    probe.step(i)
    if i in (59, 119, 179):
        inbox.join()
        probe.snap(f"step{i + 1}")
probe.done(kind="thread-list")
