"""Two leaks at once: hidden states of two megabytes a step, and the scalar losses (512 bytes a step)."""
import torch, probe
import torch.nn as nn

device = "cuda"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.GRU(128, 512, batch_first=True)
        self.head = nn.Linear(512, 64)

    def forward(self, x):
        hidden, _ = self.lstm(x)  # ALLOC
        return hidden, self.head(hidden[:, -1])


model = Model().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
hidden_log, losses = [], []
probe.start()
for i in range(probe.steps(120)):
    x = torch.randn(16, 64, 128, device=device)
    y = torch.randint(0, 64, (16,), device=device)
    hidden, logits = model(x)
    loss = nn.functional.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    hidden_log.append(hidden.detach())  # LEAK
    losses.append(loss)  # LEAK
    probe.step(i)
    if i in (39, 79, 119):
        probe.snap(f"step{i + 1}")
probe.done(kind="python-list")
