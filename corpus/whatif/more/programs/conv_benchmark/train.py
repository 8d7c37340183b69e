"""A convolutional network under cudnn.benchmark with four image sizes: each new size tries algorithms with large workspaces."""
import measure
import torch
from torch import nn

device = measure.device
torch.backends.cudnn.benchmark = True
measure.start()


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True), nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True))


net = nn.Sequential(block(3, 32), block(32, 64), block(64, 128), block(128, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 100)).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for i in range(32):
    size, batch = [(160, 32), (192, 32), (224, 24), (288, 16)][i // 4 % 4]
    images = torch.randn(batch, 3, size, size, device=device)
    loss = nn.functional.cross_entropy(net(images), torch.randint(0, 100, (batch,), device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    measure.step(i)
measure.done()
