"""A generation server keeps the key-value cache of every finished request."""
import torch, probe
import torch.nn as nn

device = "cuda"
dim, heads = 256, 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, past):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, heads, dim // heads).permute(2, 0, 3, 1, 4)
        if past is not None:
            k = torch.cat([past[0], k], dim=2)  # ALLOC
            v = torch.cat([past[1], v], dim=2)  # ALLOC
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return x + self.proj(y.transpose(1, 2).reshape(b, t, dim)), (k, v)


class Server:
    def __init__(self, depth=3):
        self.layers = nn.ModuleList([Attention() for _ in range(depth)]).to(device).half()
        self.sessions = {}

    def forward(self, x, pasts):
        kept = []
        for layer, past in zip(self.layers, pasts):
            x, past = layer(x, past)
            kept.append(past)
        return x, kept

    @torch.inference_mode()
    def generate(self, request, prompt, tokens):
        x, pasts = self.forward(prompt, [None] * len(self.layers))
        for _ in range(tokens):
            x, pasts = self.forward(x[:, -1:], pasts)
        self.sessions[request] = pasts  # LEAK
        return x


server = Server()
probe.start()
for i in range(probe.steps(60)):
    prompt = torch.randn(1, 96 + (i * 7) % 64, dim, device=device, dtype=torch.half)
    server.generate(f"request-{i}", prompt, tokens=6)
    probe.step(i)
    if i in (14, 34, 59):
        probe.snap(f"step{i + 1}")
probe.done(kind="object-dict")
