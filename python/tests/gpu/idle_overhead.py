"""Measures what the recorder costs a launch-bound training step on a device.

    vramscope run --first-window no --quiet python/tests/gpu/idle_overhead.py

Rounds of steps without the recorder, with it watching, with a window open, and with torch's own history alternate; medians
are printed in ms a step, as JSON.
"""

from __future__ import annotations

import json
import statistics
import time

import torch
from vramscope import recording

STEPS, ROUNDS = 100, 15

model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()) for _ in range(24)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, foreach=False)
data = torch.randn(32, 256, device="cuda")


def train() -> None:
    optimizer.zero_grad()
    model(data).square().mean().backward()
    optimizer.step()


def timed() -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(STEPS):
        train()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / STEPS * 1e3


for _ in range(50):
    train()
recorder = recording.current
assert recorder is not None and recorder.history is not None, "run it with `vramscope run`"
torchs = recorder.history.record
times: dict[str, list[float]] = {}
for _ in range(ROUNDS):
    recorder.steps.unhook()
    recorder.sampler._pause()
    times.setdefault("without", []).append(timed())
    torchs(stacks="python", max_entries=200_000)
    times.setdefault("torch's own history", []).append(timed())
    torchs(enabled=None)
    recorder.steps.hook(torch)
    recorder.sampler._resume()
    times.setdefault("watching", []).append(timed())
    recorder.history.switch_on()
    times.setdefault("in a window", []).append(timed())
    recorder.history.switch_off()
medians = {name: statistics.median(values) for name, values in times.items()}
shares = {name: round((value / medians["without"] - 1) * 100, 2) for name, value in medians.items()}
print(json.dumps({"ms_a_step": {name: round(value, 4) for name, value in medians.items()}, "percent_more": shares}, indent=1))
