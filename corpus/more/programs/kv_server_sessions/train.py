"""A chat server keeps the KV cache of every session, and sessions never expire."""
import random, torch, probe
import torch.nn as nn

device = "cuda"
dim, heads = 512, 8


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, past):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, heads, dim // heads).permute(2, 0, 3, 1, 4)
        if past is not None:
            k = torch.cat([past[0], k], dim=2)  # ALLOC
            v = torch.cat([past[1], v], dim=2)  # ALLOC
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return x + self.out(y.transpose(1, 2).reshape(b, t, dim)), (k, v)


class Server:
    def __init__(self):
        self.embed = nn.Embedding(1000, dim).to(device)
        self.layers = nn.ModuleList([Attention() for _ in range(2)]).to(device)
        self.sessions = {}

    def forward(self, ids, past):
        x, present = self.embed(ids), []
        for layer, p in zip(self.layers, past):
            x, kv = layer(x, p)
            present.append(kv)
        return x[:, -1] @ self.embed.weight.T, present

    @torch.inference_mode()
    def chat(self, session, prompt, new_tokens):
        past = self.sessions.get(session) or [None, None]
        for token in range(prompt.shape[1] if past[0] is not None else 1):
            ids = prompt if past[0] is None else prompt[:, token : token + 1]
            logits, past = self.forward(ids, past)
        for _ in range(new_tokens):
            logits, past = self.forward(logits.argmax(-1, keepdim=True), past)
        self.sessions[session] = past  # LEAK


rng = random.Random(1)
server = Server()
probe.start()
for i in range(probe.steps(75)):
    returning = server.sessions and rng.random() < 0.25
    session = rng.choice(sorted(server.sessions)) if returning else f"user-{i}"
    length = rng.randrange(2, 4) if returning else rng.randrange(64, 400)
    server.chat(session, torch.randint(0, 1000, (1, length), device=device), 2)
    probe.step(i, length=length)
    if i in (24, 49, 74):
        probe.snap(f"step{i + 1}")
probe.done(kind="unbounded-cache")
