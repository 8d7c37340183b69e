"""History begins at step 250. A FIFO buffer of 200 is full and turns over; beside it another line leaks blocks of the same size."""
import collections, torch, probe
import torch.nn as nn

model = nn.Linear(128, 128).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
replay = collections.deque(maxlen=200)
debug = []
for i in range(probe.steps(370)):
    if i == 250:
        probe.start()
    state = torch.randn(512, 128, device="cuda")
    replay.append(state)
    out = model(replay[(i * 7919) % len(replay)])  # ALLOC
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 2:
        debug.append(out.detach())  # LEAK
    if i >= 250:
        probe.step(i)
    if i in (289, 329, 369):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
