"""Clean: 12 iterations of 40 environment steps into a rollout list, 3 epochs of updates, clear(). Snapshots within rollouts."""
import torch, probe
import torch.nn as nn

policy = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 9)).cuda()
optimizer = torch.optim.Adam(policy.parameters())
rollout = []
probe.start()
n = 0
for iteration in range(12):
    obs = torch.randn(512, 64, device="cuda")
    for t in range(40):
        with torch.no_grad():
            out = policy(obs)
            action = torch.distributions.Categorical(logits=out[:, :8]).sample()
        reward = torch.randn(512, device="cuda")
        rollout.append((obs, action, out, reward))
        obs = obs + 0.1 * torch.randn_like(obs)
        probe.step(n)
        n += 1
        if n in (150, 310, 470):
            probe.snap(f"step{n}")
    for epoch in range(3):
        for o, a, old, r in rollout[::8]:
            new = policy(o)
            ratio = (new[:, :8].log_softmax(-1).gather(1, a[:, None]) - old[:, :8].log_softmax(-1).gather(1, a[:, None])).exp()
            loss = -(ratio.squeeze(1) * (r - new[:, 8].detach())).mean() + (new[:, 8] - r).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    rollout.clear()
probe.done(kind="none")
