"""The hidden state is carried over without detach, so the graph spans all past steps."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)
rnn = nn.GRUCell(128, 256).to(DEVICE)
head = nn.Linear(256, 10).to(DEVICE)
optimizer = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=1e-3)
hidden = torch.zeros(64, 256, device=DEVICE)
for i in range(40):
    hidden = rnn(torch.randn(64, 128, device=DEVICE), hidden)
    loss = head(hidden).logsumexp(1).mean()
    loss.backward(retain_graph=True)
    optimizer.zero_grad()
    step()
check()
