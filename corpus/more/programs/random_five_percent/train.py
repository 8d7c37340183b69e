"""About one step in twenty looks odd and is kept for inspection; nobody ever inspects."""
import random, torch, probe
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(768, 768), nn.GELU(), nn.Linear(768, 768)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
rng = random.Random(5)
suspicious = {}
probe.start()
for i in range(probe.steps(240)):
    x = torch.randn(256, 768, device=device)
    out = model(x)  # ALLOC
    loss = nn.functional.smooth_l1_loss(out, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rng.random() < 0.05:
        suspicious[i] = out.detach()  # LEAK
    probe.step(i)
    if i in (79, 159, 239):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-dict", kept=len(suspicious))
