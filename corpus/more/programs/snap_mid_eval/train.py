"""Clean: the evaluation every 25 steps collects the outputs of 30 batches and drops them; the snapshots lie within evaluations."""
import torch, probe
import torch.nn as nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())


@torch.no_grad()
def evaluate(step):
    outputs = []
    for b in range(30):
        outputs.append(model(torch.randn(256, 256, device="cuda")))
        if b == 21 and step in (74, 124, 199):
            probe.snap(f"step{step + 1}")
    return torch.cat(outputs).std().item()


probe.start()
for i in range(probe.steps(200)):
    x = torch.randn(128, 256, device="cuda")
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i % 25 == 24:
        evaluate(i)
    probe.step(i)
probe.done(kind="none")
