"""Truncated backpropagation that forgot to truncate: the LSTM state is never detached."""
import torch, probe
import torch.nn as nn

device = "cuda"


class CharModel(nn.Module):
    def __init__(self, vocab=96, width=192):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.out = nn.Linear(width, vocab)

    def forward(self, ids, state):
        x, state = self.lstm(self.embed(ids), state)  # ALLOC
        return self.out(x), state


model = CharModel().to(device)
state = None
probe.start()
for i in range(probe.steps(45)):
    ids = torch.randint(0, 96, (32, 24), device=device)
    logits, state = model(ids, state)  # LEAK
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids.flatten())
    model.zero_grad()
    loss.backward(retain_graph=True)
    probe.step(i)
    if i in (14, 29, 44):
        probe.snap(f"step{i + 1}")
probe.done(kind="graph-carry")
