"""save_for_backward in a custom Function, and losses that are kept."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


class Entropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        probs = x.softmax(1)
        ctx.save_for_backward(probs)
        return -(probs * probs.log()).sum()

    @staticmethod
    def backward(ctx, grad):
        (probs,) = ctx.saved_tensors
        return grad * -(probs.log() + 1)


weight = torch.randn(256, 1024, device=DEVICE, requires_grad=True)
losses = []
for i in range(20):
    losses.append(Entropy.apply(weight + i))
    step()
check()
