"""A replay buffer with maxlen: fills until step 120 of 200, then each new transition pushes out the oldest."""
import collections, random, torch, probe
import torch.nn as nn

device = "cuda"
Transition = collections.namedtuple("Transition", "obs action reward next_obs")
q_net = nn.Sequential(nn.Conv2d(4, 16, 8, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 81, 6)).to(device)
optimizer = torch.optim.Adam(q_net.parameters(), fused=True)
buffer = collections.deque(maxlen=120)
rng = random.Random(0)


def act(obs):
    with torch.no_grad():
        return q_net(obs.float() / 255).argmax(1)


def learn():
    batch = Transition(*zip(*rng.sample(list(buffer), 4)))
    obs, action, reward, next_obs = (torch.cat(part) for part in batch)
    with torch.no_grad():
        target = reward + 0.99 * q_net(next_obs.float() / 255).amax(1)
    value = q_net(obs.float() / 255).gather(1, action[:, None]).squeeze(1)
    optimizer.zero_grad()
    nn.functional.smooth_l1_loss(value, target).backward()
    optimizer.step()


probe.start()
obs = torch.randint(0, 255, (8, 4, 84, 84), dtype=torch.uint8, device=device)
for i in range(probe.steps(200)):
    action = act(obs)
    next_obs = torch.randint(0, 255, (8, 4, 84, 84), dtype=torch.uint8, device=device)
    buffer.append(Transition(obs, action, torch.rand(8, device=device), next_obs))
    obs = next_obs
    if i >= 16 and i % 4 == 0:
        learn()
    probe.step(i)
    if i in (66, 133, 199):
        probe.snap(f"step{i + 1}")
probe.done(kind="bounded-buffer")
