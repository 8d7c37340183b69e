"""A hand-written autograd Function notes its gradients in backward, to plot them some day."""
import torch, probe
import torch.nn as nn

device = "cuda"
seen_gradients = []


class LeakyClamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad = grad * (x > 0)  # ALLOC
        seen_gradients.append(grad)  # LEAK
        return grad


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(256, 1024), nn.Linear(1024, 64)

    def forward(self, x):
        return self.down(LeakyClamp.apply(self.up(x)))


model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
probe.start()
for i in range(probe.steps(180)):
    optimizer.zero_grad()
    model(torch.randn(128, 256, device=device)).square().mean().backward()
    optimizer.step()
    probe.step(i)
    if i in (59, 119, 179):
        probe.snap(f"step{i + 1}")
probe.done(kind="autograd-function")
