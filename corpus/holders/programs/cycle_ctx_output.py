"""A custom Function keeps its own output on ctx."""
import builtins
import gc
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.out = x.exp()
        return ctx.out

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.out


weight = torch.randn(256, 1024, device=DEVICE, requires_grad=True)


def train_step():
    Exp.apply(weight).sum().backward()


gc.disable()
for i in range(20):
    train_step()
    step()
check()
