"""A transformer with Adam on batches of varying length: every step asks for other sizes."""
import random
import measure
import torch
from torch import nn

device = measure.device
measure.start()
rng = random.Random(7)
embed = nn.Embedding(4000, 384).to(device)
layers = nn.ModuleList([nn.TransformerEncoderLayer(384, 6, 1536, batch_first=True, dropout=0.1) for _ in range(4)]).to(device)
head = nn.Linear(384, 4000).to(device)
optimizer = torch.optim.Adam([*embed.parameters(), *layers.parameters(), *head.parameters()])
for i in range(22):
    length, batch = rng.randrange(40, 700), rng.choice([4, 6, 8, 12])
    ids = torch.randint(0, 4000, (batch, length), device=device)
    x = embed(ids)
    for layer in layers:
        x = layer(x)
    loss = nn.functional.cross_entropy(head(x).flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    measure.step(i)
measure.done()
