"""Three metric scalars a step stay on the GPU: 512 bytes each beside a model of many megabytes."""
import torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1000)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
metrics = []
probe.start()
for i in range(probe.steps(180)):
    x = torch.randn(64, 1024, device=device)
    y = torch.randint(0, 1000, (64,), device=device)
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, y)  # ALLOC
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # ALLOC
    optimizer.step()
    accuracy = (logits.argmax(1) == y).float().mean()  # ALLOC
    metrics.append({"loss": loss.detach(), "norm": norm, "accuracy": accuracy})  # LEAK
    probe.step(i)
    if i in (59, 119, 179):
        probe.snap(f"step{i + 1}")
probe.done(kind="scalar-retained")
