"""A network on graphs: every batch has other numbers of nodes and edges, and messages are as many as edges. Embeddings of some graphs are kept."""
import random
import measure
import torch
from torch import nn

device = measure.device
measure.start()
rng = random.Random(41)


class Layer(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.message, self.own, self.norm = nn.Linear(2 * a, b), nn.Linear(a, b), nn.LayerNorm(b)

    def forward(self, x, edges):
        source, target = edges
        message = nn.functional.relu(self.message(torch.cat([x[source], x[target]], -1)))
        degree = torch.zeros(len(x), 1, device=x.device).index_add(0, target, torch.ones(len(target), 1, device=x.device)).clamp(min=1)
        mean = torch.zeros(len(x), message.shape[1], device=x.device).index_add(0, target, message) / degree
        return self.norm(self.own(x) + mean)


layers = nn.ModuleList([Layer(64, 128), Layer(128, 128), Layer(128, 96)]).to(device)
out = nn.Linear(96, 20).to(device)
optimizer = torch.optim.Adam([*layers.parameters(), *out.parameters()], 1e-3)
memory = []
for i in range(40):
    nodes = rng.randrange(2000, 24000)
    count = nodes * rng.randrange(3, 11)
    x, edges = torch.randn(nodes, 64, device=device), torch.randint(0, nodes, (2, count), device=device)
    for layer in layers:
        x = nn.functional.dropout(layer(x, edges), 0.2)
    loss = nn.functional.cross_entropy(out(x), torch.randint(0, 20, (nodes,), device=device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    memory.append(x.detach()[: rng.randrange(500, nodes)].clone())
    if len(memory) > 8:
        memory.pop(rng.randrange(len(memory)))
    measure.step(i)
measure.done()
