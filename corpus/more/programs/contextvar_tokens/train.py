"""The current batch is published in a context variable; the tokens, which hold the old values, are kept for a reset that never comes."""
import contextvars, torch, probe
import torch.nn as nn

current = contextvars.ContextVar("current")
model = nn.Sequential(nn.Linear(384, 768), nn.ReLU(), nn.Linear(768, 384)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
tokens = []


def publish(batch):
    tokens.append(current.set(batch))  # LEAK


def main():
    for i in range(probe.steps(140)):
        batch = torch.randn(192, 384, device="cuda")  # ALLOC
        publish(batch)
        loss = (model(batch) - current.get()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        probe.step(i)
        if i in (46, 93, 139):
            probe.snap(f"step{i + 1}")


probe.start()
main()
probe.done(kind="contextvar")
