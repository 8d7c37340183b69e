"""Clean momentum contrast: a key encoder follows the query encoder, and the memory bank is written in place."""
import copy, torch, probe
import torch.nn as nn

device = "cuda"


class MoCo(nn.Module):
    def __init__(self, dim=128, size=8192):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(768, 512), nn.ReLU(), nn.Linear(512, dim))
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("bank", nn.functional.normalize(torch.randn(dim, size), dim=0))
        self.cursor = 0

    @torch.no_grad()
    def enqueue(self, keys):
        n = keys.shape[0]
        self.bank[:, self.cursor : self.cursor + n] = keys.T
        self.cursor = (self.cursor + n) % self.bank.shape[1]

    def forward(self, a, b):
        q = nn.functional.normalize(self.query(a), dim=1)
        with torch.no_grad():
            for p, k in zip(self.query.parameters(), self.key.parameters()):
                k.lerp_(p, 0.001)
            k = nn.functional.normalize(self.key(b), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.bank.clone()], dim=1) / 0.07
        self.enqueue(k)
        return logits


model = MoCo().to(device)
optimizer = torch.optim.SGD(model.query.parameters(), lr=0.03, momentum=0.9)
probe.start()
for i in range(probe.steps(130)):
    x = torch.randn(128, 768, device=device)
    logits = model(x + 0.1 * torch.randn_like(x), x)
    loss = nn.functional.cross_entropy(logits, torch.zeros(128, dtype=torch.long, device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    probe.step(i, loss=loss.item())
    if i in (43, 86, 129):
        probe.snap(f"step{i + 1}")
probe.done(kind="none")
