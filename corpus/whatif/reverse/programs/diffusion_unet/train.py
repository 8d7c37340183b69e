"""A diffusion-like U-Net on pictures in buckets of shapes, with a moving average of its weights that draws samples now and then."""
import copy
import random
import measure
import torch
from torch import nn

device = measure.device
measure.start()
rng = random.Random(31)


class Block(nn.Module):
    def __init__(self, a, b, time):
        super().__init__()
        self.first, self.second = nn.Sequential(nn.GroupNorm(8, a), nn.SiLU(), nn.Conv2d(a, b, 3, 1, 1)), nn.Sequential(nn.GroupNorm(8, b), nn.SiLU(), nn.Conv2d(b, b, 3, 1, 1))
        self.time, self.skip = nn.Linear(time, b), nn.Conv2d(a, b, 1) if a != b else nn.Identity()

    def forward(self, x, time):
        return self.skip(x) + self.second(self.first(x) + self.time(time)[:, :, None, None])


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(8, width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).flatten(2).transpose(1, 2).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        return x + self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(2, 3).flatten(1, 2).unflatten(-1, x.shape[2:]))


class UNet(nn.Module):
    def __init__(self, widths=(48, 96, 192), time=128):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, time), nn.SiLU(), nn.Linear(time, time))
        self.head, self.tail = nn.Conv2d(4, widths[0], 3, 1, 1), nn.Conv2d(widths[0], 4, 3, 1, 1)
        self.down = nn.ModuleList([Block(a, b, time) for a, b in zip((widths[0],) + widths, widths)])
        self.middle = nn.ModuleList([Block(widths[-1], widths[-1], time), Attention(widths[-1]), Block(widths[-1], widths[-1], time)])
        self.up = nn.ModuleList([Block(2 * b, a, time) for a, b in zip((widths[0],) + widths, widths)][::-1])

    def forward(self, x, t):
        time, x, kept = self.time(t[:, None]), self.head(x), []
        for block in self.down:
            x = block(x, time)
            kept.append(x)
            x = nn.functional.avg_pool2d(x, 2)
        x = self.middle[2](self.middle[1](self.middle[0](x, time)), time)
        for block in self.up:
            skip = kept.pop()
            x = block(torch.cat([nn.functional.interpolate(x, size=skip.shape[2:]), skip], 1), time)
        return self.tail(x)


net = UNet().to(device)
average = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.AdamW(net.parameters(), 1e-4, foreach=True)
shapes = [(64, 64), (48, 80), (80, 48), (56, 72), (96, 40), (32, 112)]
for i in range(18):
    (h, w), batch = rng.choice(shapes), rng.randrange(6, 22)
    clean, noise, t = torch.randn(batch, 4, h, w, device=device), torch.randn(batch, 4, h, w, device=device), torch.rand(batch, device=device)
    part = t[:, None, None, None]
    loss = nn.functional.mse_loss(net(clean * (1 - part) + noise * part, t), noise)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    with torch.no_grad():
        torch._foreach_lerp_(list(average.parameters()), list(net.parameters()), 0.01)
        if i % 6 == 5:
            picture = torch.randn(rng.randrange(16, 33), 4, *rng.choice(shapes), device=device)
            for s in range(4):
                picture = picture - average(picture, torch.full((len(picture),), 1 - s / 4, device=device)) / 4
    measure.step(i)
measure.done()
