"""Clean: gradients are accumulated over seven micro-batches and set to None after each optimizer step."""
import torch, probe
import torch.nn as nn

device = "cuda"
accumulate = 7
model = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Dropout(0.1), nn.Linear(2048, 1024), nn.LayerNorm(1024)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
probe.start()
history = []
for i in range(probe.steps(200)):
    x = torch.randn(64, 1024, device=device)
    loss = nn.functional.mse_loss(model(x), x) / accumulate
    loss.backward()
    history.append(loss.item())
    if (i + 1) % accumulate == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    probe.step(i)
    if i in (66, 133, 199):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
