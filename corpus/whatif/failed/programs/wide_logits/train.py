"""A language model whose texts get longer: in the end the scores of all words do not fit, however memory is laid out. Nothing is left over."""
import random
import report
import torch
from torch import nn

device = report.device
report.begin()
report.record()
rng, dim, words = random.Random(71), 384, 24000
embed, head = nn.Embedding(words, dim).to(device), nn.Linear(dim, words).to(device)
layers = nn.ModuleList([nn.TransformerEncoderLayer(dim, 6, 4 * dim, 0.0, batch_first=True, norm_first=True) for _ in range(3)]).to(device)
optimizer = torch.optim.AdamW([*embed.parameters(), *layers.parameters(), *head.parameters()], foreach=True)


def train():
    for i in range(24):
        ids = torch.randint(0, words, (4, 96 + 40 * i + rng.randrange(30)), device=device)
        x = embed(ids)
        for layer in layers:
            x = layer(x)
        loss = nn.functional.cross_entropy(head(x).flatten(0, 1), ids.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        report.step(i)


try:
    train()
except torch.OutOfMemoryError as error:
    failure = error
else:
    failure = None
report.dump()  # after the function is left and its tensors are gone
report.done(failure)
