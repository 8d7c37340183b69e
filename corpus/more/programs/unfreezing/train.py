"""Clean: a block is unfrozen every 30 steps (four in all): gradients and moments come in bursts, bounded by the model."""
import torch, probe
import torch.nn as nn

blocks = nn.ModuleList([nn.Linear(768, 768) for _ in range(5)]).cuda()
for b in blocks[:-1]:
    b.requires_grad_(False)
optimizer = torch.optim.AdamW(blocks[-1].parameters())
probe.start()
for i in range(probe.steps(150)):
    if i and i % 30 == 0:
        b = blocks[4 - i // 30]
        b.requires_grad_(True)
        optimizer.add_param_group({"params": list(b.parameters())})
    x = target = torch.randn(128, 768, device="cuda")
    for b in blocks:
        x = torch.relu(b(x))
    loss = nn.functional.mse_loss(x, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i)
    if i in (49, 99, 149):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
