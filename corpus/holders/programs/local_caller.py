"""A caller three frames up keeps what its callees return."""
import builtins
import os
import torch
import torch.nn as nn

DEVICE = os.environ.get("DEVICE", "cpu")
step = getattr(builtins, "vramscope_step", lambda: None)
check = getattr(builtins, "vramscope_check", lambda: None)


def write_summary(epoch, mean):
    if epoch == 5:
        check()
    return f"{epoch}: {mean:.4f}"


def report(epoch, mean):
    return write_summary(epoch, mean)


def run_batch(model):
    with torch.no_grad():
        return model(torch.randn(256, 256, device=DEVICE))


def fit(model):
    trace = []
    for epoch in range(6):
        for _ in range(4):
            trace.append(run_batch(model))
            step()
        report(epoch, float(trace[-1].mean()))
    return len(trace)


def main():
    fit(nn.Linear(256, 1024).to(DEVICE))


main()
