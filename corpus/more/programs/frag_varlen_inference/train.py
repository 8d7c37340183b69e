"""Embedding documents sorted by length, no backward: each batch is a bit longer than any block left over from before."""
import random, torch, probe
import torch.nn as nn

device = "cuda"
rng = random.Random(11)
encoder = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).to(device).half().eval()
lengths = sorted(int(200 * 1.018 ** rng.uniform(0, 180)) for _ in range(160))
recent = []
probe.start()
with torch.inference_mode():
    for i, length in enumerate(lengths):
        tokens = torch.randn(16, length, 256, device=device, dtype=torch.half)
        hidden = encoder(tokens)
        recent.append(hidden[0].clone())
        if len(recent) > 8:
            recent.pop(0)
        pooled = hidden.amax(1).float().cpu()
        del tokens, hidden
        probe.step(i, length=length)
        if i in (53, 106, 159):
            probe.snap(f"step{i + 1}")
probe.done(kind="fragmentation")
