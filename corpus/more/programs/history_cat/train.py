"""The embedding history is one tensor, concatenated anew each step: one live block, ever larger."""
import torch, probe
import torch.nn as nn

device = "cuda"


class EmbeddingTracker:
    def __init__(self, dim):
        self.history = torch.empty(0, dim, device=device)

    def update(self, emb):
        self.history = torch.cat([self.history, emb.detach()])  # LEAK ALLOC


encoder = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 512)).to(device)
optimizer = torch.optim.SGD(encoder.parameters(), lr=1e-3)
tracker = EmbeddingTracker(512)
probe.start()
for i in range(probe.steps(150)):
    emb = encoder(torch.randn(128, 256, device=device))
    loss = (emb.norm(dim=1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tracker.update(emb)
    probe.step(i)
    if i in (49, 99, 149):
        probe.snap(f"step{i + 1}")
probe.done(kind="growing-tensor")
