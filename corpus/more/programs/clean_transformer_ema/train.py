"""Clean: optimizer state appears at the first step, a scheduler runs, and the EMA copy begins at step 50."""
import copy, torch, probe
import torch.nn as nn

device = "cuda"


class LM(nn.Module):
    def __init__(self, vocab=2048, dim=256, depth=1):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(dim, 4, 4 * dim, batch_first=True, norm_first=True) for _ in range(depth)])
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


model = LM().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 150)
ema, running = None, 0.0
probe.start()
for step in range(probe.steps(110)):
    ids = torch.randint(0, 2048, (8, 65), device=device)
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step == 50:
        ema = copy.deepcopy(model).requires_grad_(False)
    if ema is not None:
        with torch.no_grad():
            torch._foreach_lerp_(list(ema.parameters()), list(model.parameters()), 0.01)
    running += loss.item()
    probe.step(step)
    if step in (36, 73, 109):
        probe.snap(f"step{step + 1}")
probe.done(kind="none")
