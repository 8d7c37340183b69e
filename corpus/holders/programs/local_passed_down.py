"""A list is handed down through the calls and looked at in the innermost."""
import builtins
import os
import torch

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def summarize(values):
    check()
    return sum(float(v[0, 0]) for v in values)


def evaluate(collected):
    for i in range(24):
        collected.append(torch.randn(256, 1024, device=DEVICE))
        step()
    return summarize(collected)


def main():
    history = []
    return evaluate(history)


main()
