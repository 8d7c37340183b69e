"""An inner function appends to a list of the function that is still running."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def main():
    seen = []

    def remember(x):
        seen.append(x)

    for i in range(24):
        remember(torch.randn(256, 1024, device=DEVICE))
        step()
    check()


main()
