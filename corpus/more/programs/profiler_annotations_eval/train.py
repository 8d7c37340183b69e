"""Clean epochs with evaluation between them, all wrapped in record_function annotations."""
import torch, probe
import torch.nn as nn
from torch.profiler import record_function

device = "cuda"
model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 64)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)


def train_step():
    with record_function("data"):
        x = torch.randn(128, 512, device=device)
        y = torch.randint(0, 64, (128,), device=device)
    with record_function("forward"):
        loss = nn.functional.cross_entropy(model(x), y)
    with record_function("backward"):
        loss.backward()
    with record_function("optimizer"):
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


@torch.inference_mode()
def evaluate(batches):
    with record_function("evaluate"):
        logits = [model(torch.randn(512, 512, device=device)) for _ in range(batches)]
        return torch.cat(logits).softmax(1).amax(1).mean().item()


probe.start()
n = 0
for epoch in range(7):
    with record_function(f"epoch {epoch}"):
        for _ in range(20):
            train_step()
            probe.step(n, phase="train")
            n += 1
        evaluate(12)
        probe.step(n, phase="eval")
        n += 1
    if epoch in (1, 4, 6):
        probe.snap(f"step{n}")
probe.done(kind="none")
