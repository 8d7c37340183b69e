"""Training and evaluation take turns, and each epoch ends with empty_cache."""
import random
import measure
import torch
from torch import nn

device = measure.device
measure.start()
rng = random.Random(11)
net = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000)).to(device)
optimizer = torch.optim.AdamW(net.parameters())
n, best = 0, None
for epoch in range(6):
    for _ in range(6):
        x = torch.randn(rng.randrange(1000, 6000), 1024, device=device)
        nn.functional.cross_entropy(net(x), torch.randint(0, 1000, (len(x),), device=device)).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        measure.step(n)
        n += 1
    outputs = []
    with torch.no_grad():
        for _ in range(5):
            outputs.append(net(torch.randn(rng.randrange(4000, 12000), 1024, device=device)))
            measure.step(n)
            n += 1
    score = torch.cat(outputs).softmax(-1).amax(-1).mean()
    if best is None or epoch % 2:
        best = {k: v.clone() for k, v in net.state_dict().items()}
    del outputs, score
    if device == "cuda":
        torch.cuda.empty_cache()
measure.done()
