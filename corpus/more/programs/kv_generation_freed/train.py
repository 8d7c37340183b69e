"""Clean text generation: each request grows a KV cache of its own length by concatenation and drops it at the end."""
import random, torch, probe
import torch.nn as nn

device = "cuda"
dim, heads = 512, 8


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, cache):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, heads, -1).permute(2, 0, 3, 1, 4)
        if "k" in cache:
            k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
        cache["k"], cache["v"] = k, v
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        return x + self.out(y.transpose(1, 2).reshape(b, t, dim))


layers = nn.ModuleList([Layer() for _ in range(2)]).to(device)
embed = nn.Embedding(1000, dim).to(device)


@torch.inference_mode()
def generate(prompt, new_tokens):
    caches = [{} for _ in layers]
    ids, out = prompt, []
    for _ in range(new_tokens):
        x = embed(ids)
        for layer, cache in zip(layers, caches):
            x = layer(x, cache)
        ids = (x[:, -1] @ embed.weight.T).argmax(-1, keepdim=True)
        out.append(ids)
    return torch.cat(out, 1).tolist()


rng = random.Random(4)
answers = []
probe.start()
for i in range(probe.steps(50)):
    prompt = torch.randint(0, 1000, (rng.randrange(1, 5), rng.randrange(16, 500)), device=device)
    answers.append(generate(prompt, rng.randrange(2, 7)))
    probe.step(i, length=prompt.shape[1])
    if i in (16, 33, 49):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
