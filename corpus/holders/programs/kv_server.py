"""A serving class keeps the KV cache of finished requests."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Session:
    def __init__(self, layers):
        self.kv = [(torch.zeros(1, 8, 128, 64, device=DEVICE), torch.zeros(1, 8, 128, 64, device=DEVICE)) for _ in range(layers)]
        self.length = 0

    def append(self, k, v):
        for keys, values in self.kv:
            keys[:, :, self.length] = k
            values[:, :, self.length] = v
        self.length += 1


class Server:
    def __init__(self):
        self.sessions = {}

    def generate(self, request, tokens):
        session = self.sessions.setdefault(request, Session(2))
        for _ in range(tokens):
            session.append(torch.randn(1, 8, 64, device=DEVICE), torch.randn(1, 8, 64, device=DEVICE))
        return session.length


server = Server()
for request in range(24):
    server.generate(request, 4)
    step()
check()
