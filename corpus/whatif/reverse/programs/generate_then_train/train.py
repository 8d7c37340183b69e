"""Learning from own texts: a policy generates with caches, a frozen copy and a critic judge, then policy and critic train on what came out."""
import copy
import random
import measure
import torch
from torch import nn

device = measure.device
measure.start()
rng, dim, heads, words = random.Random(43), 448, 7, 6000


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.qkv, self.out = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x, past=None):
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in self.qkv(self.one(x)).chunk(3, -1))
        if past:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=not past)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.mlp(self.two(x)), (k, v)


class Model(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.embed, self.layers, self.head = nn.Embedding(words, dim), nn.ModuleList([Layer() for _ in range(3)]), nn.Linear(dim, outputs)

    def forward(self, ids, caches=None):
        x = self.embed(ids)
        for n, layer in enumerate(self.layers):
            x, kept = layer(x, caches[n] if caches else None)
            if caches is not None:
                caches[n] = kept
        return self.head(x)


policy, critic = Model(words).to(device), Model(1).to(device)
frozen = copy.deepcopy(policy).requires_grad_(False)
for_policy, for_critic = torch.optim.AdamW(policy.parameters(), 1e-5), torch.optim.AdamW(critic.parameters(), 1e-5)
for i in range(5):
    prompts = torch.randint(0, words, (rng.randrange(6, 20), rng.randrange(64, 320)), device=device)
    new = rng.randrange(16, 40)
    with torch.no_grad():
        caches = [None] * 3
        ids, logits = prompts, policy(prompts, caches)
        for _ in range(new):
            token = logits[:, -1:].argmax(-1)
            ids = torch.cat([ids, token], 1)
            logits = policy(token, caches)
        del caches, logits
        old = frozen(ids).log_softmax(-1).gather(-1, ids[..., None])
        value = critic(ids)
    for part in range(2):
        some = slice(part * len(ids) // 2, (part + 1) * len(ids) // 2)
        chosen = policy(ids[some]).log_softmax(-1).gather(-1, ids[some][..., None])
        ratio = (chosen - old[some]).exp()
        (-(ratio * value[some]).mean() + 0.1 * (chosen - old[some]).square().mean()).backward()
        for_policy.step()
        for_policy.zero_grad(set_to_none=True)
        (critic(ids[some]) - value[some] - 1).square().mean().backward()
        for_critic.step()
        for_critic.zero_grad(set_to_none=True)
    measure.step(i)
measure.done()
