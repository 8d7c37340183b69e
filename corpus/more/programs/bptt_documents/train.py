"""Clean: a document is 24 chunks; the hidden state is carried with its graph and backward runs at its end. Snapshots within a document."""
import torch, probe
import torch.nn as nn

torch.backends.cudnn.enabled = False
cell = nn.LSTMCell(256, 512).cuda()
head = nn.Linear(512, 128).cuda()
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
probe.start()
n = 0
for document in range(9):
    state = (torch.zeros(128, 512, device="cuda"), torch.zeros(128, 512, device="cuda"))
    total = 0.0
    for chunk in range(24):
        x = torch.randn(128, 256, device="cuda")
        state = cell(x, state)
        total = total + head(state[0]).logsumexp(-1).mean()
        probe.step(n)
        n += 1
        if n in (62, 134, 210):
            probe.snap(f"step{n}")
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
probe.done(kind="none")
