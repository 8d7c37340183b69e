"""Generation with caches that grow by concatenation; requests come and go at different lengths."""
import random
import measure
import torch
from torch import nn

device = measure.device
measure.start()
rng, dim, heads = random.Random(3), 512, 8
layers = nn.ModuleList([nn.ModuleDict({"qkv": nn.Linear(dim, 3 * dim), "out": nn.Linear(dim, dim), "up": nn.Linear(dim, 4 * dim), "down": nn.Linear(4 * dim, dim)}) for _ in range(3)]).to(device).half()


@torch.no_grad()
def forward(x, caches):
    for n, layer in enumerate(layers):
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in layer["qkv"](x).chunk(3, -1))
        if caches[n] is not None:
            k, v = torch.cat([caches[n][0], k], 2), torch.cat([caches[n][1], v], 2)
        caches[n] = (k, v)
        x = x + layer["out"](nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        x = x + layer["down"](nn.functional.gelu(layer["up"](x)))
    return x[:, -1:]


dtype = torch.float16
active = []
for i in range(90):
    if len(active) < 6 and i % 3 == 0:
        prompt = torch.randn(rng.choice([1, 2, 4]), rng.randrange(200, 3000), dim, device=device, dtype=dtype)
        caches = [None] * len(layers)
        active.append([forward(prompt, caches), caches, rng.randrange(10, 60)])
    for request in active:
        request[0] = forward(request[0], request[1])
        request[2] -= 1
    active = [request for request in active if request[2] > 0]
    measure.step(i)
measure.done()
