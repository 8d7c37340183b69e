"""Hard-example mining starts after the warm-up, at step 100 of 200; only then does memory leak."""
import torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 128)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
hard_examples = []
warmup = 100
probe.start()
for step in range(probe.steps(200)):
    x = torch.randn(128, 1024, device=device)
    y = torch.randint(0, 128, (128,), device=device)
    losses = nn.functional.cross_entropy(model(x), y, reduction="none")
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    if step >= warmup:
        worst = losses.detach().topk(48).indices
        hard_examples.append(x[worst])  # LEAK ALLOC
    probe.step(step)
    if step in (66, 133, 199):
        probe.snap(f"step{step + 1}")
probe.done(kind="python-list")
