"""Clean: in the last fifth of the run the test set's features and two ensembles are made, once each, and kept."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
final = {}
probe.start()
for i in range(probe.steps(200)):
    x = torch.randn(128, 512, device="cuda")
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i in (162, 171, 183):
        with torch.no_grad():
            final[i] = torch.stack([model(torch.randn(128, 512, device="cuda")) for _ in range(4)])
    probe.step(i)
    if i in (66, 133, 199):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
