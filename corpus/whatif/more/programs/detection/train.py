"""Detection-like work: images of every size, thousands of candidate boxes, all pairs compared, survivors kept for later steps."""
import random
import measure
import torch
from torch import nn

device = measure.device
measure.start()
rng = random.Random(19)
trunk = nn.Sequential(nn.Conv2d(3, 48, 7, 4, 3), nn.ReLU(), nn.Conv2d(48, 96, 3, 2, 1), nn.ReLU()).to(device)
box_head = nn.Linear(96, 5).to(device)
optimizer = torch.optim.SGD([*trunk.parameters(), *box_head.parameters()], 0.01, momentum=0.9)
gallery = []
for i in range(36):
    images = torch.randn(2, 3, rng.randrange(400, 1100), rng.randrange(400, 1100), device=device)
    features = trunk(images).flatten(2).transpose(1, 2)
    out = box_head(features)
    count = min(rng.randrange(500, 6000), out.shape[1])
    kept = out[..., 4].topk(count, dim=1).indices
    loss = out.square().mean()
    with torch.no_grad():
        for n in range(2):
            boxes = out[n, kept[n], :4]
            low, high = torch.minimum(boxes[:, None, :2], boxes[None, :, :2]), torch.maximum(boxes[:, None, 2:], boxes[None, :, 2:])
            overlap = (high - low).clamp(min=0).prod(-1)
            keep = (overlap.sum(1) < overlap.sum(1).median()).nonzero().flatten()
        gallery.append(features[0, : 200 + rng.randrange(3000)].clone())
    if len(gallery) > 10:
        gallery.pop(rng.randrange(len(gallery)))
    del overlap, low, high
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    measure.step(i)
measure.done()
