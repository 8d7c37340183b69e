"""Clean: history is switched on at step 250, when the replay buffer of 200 is long full; 120 steps are recorded."""
import collections, torch, probe
import torch.nn as nn

q = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 8)).cuda()
optimizer = torch.optim.Adam(q.parameters())
replay = collections.deque(maxlen=200)
for i in range(probe.steps(370)):
    if i == 250:
        probe.start()
    state = torch.randn(512, 128, device="cuda")
    with torch.no_grad():
        action = q(state).argmax(-1)
    replay.append((state, action))
    s, a = replay[(i * 7919) % len(replay)]
    loss = q(s).gather(1, a[:, None]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i >= 250:
        probe.step(i)
    if i in (289, 329, 369):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-cache")
