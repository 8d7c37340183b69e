"""A second stream copies the next batch and prepares it; record_stream keeps each batch until training is through with it."""
import random
import measure
import torch
from torch import nn

device = measure.device
measure.start()
rng = random.Random(5)
net = nn.Sequential(nn.Conv2d(3, 64, 5, 2, 2), nn.ReLU(), nn.Conv2d(64, 128, 3, 2, 1), nn.ReLU(), nn.Conv2d(128, 128, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)).to(device)
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
main, side = torch.cuda.current_stream(), torch.cuda.Stream()
host = torch.randint(0, 255, (40, 3, 256, 256), dtype=torch.uint8).pin_memory()


def fetch():
    batch, size = rng.randrange(8, 40), rng.choice([160, 192, 224, 256])
    with torch.cuda.stream(side):
        raw = host[:batch].to(device, non_blocking=True)
        images = nn.functional.interpolate(raw.float().div_(255), size=(size, size), mode="bilinear")
        return images, torch.randint(0, 10, (batch,), device=device)


following = fetch()
for i in range(40):
    main.wait_stream(side)
    images, labels = following
    images.record_stream(main)
    labels.record_stream(main)
    following = fetch()
    loss = nn.functional.cross_entropy(net(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del images, labels
    measure.step(i)
measure.done()
