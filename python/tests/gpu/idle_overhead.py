"""Measures what the recorder costs a launch-bound training step on a device.

    vramscope run --first-window no --quiet python/tests/gpu/idle_overhead.py

Short rounds of steps without the recorder, with it watching, with a window open, and with torch's own history alternate. Each
is compared with the rounds without that stand before and after it, as the clock of such a machine drifts by more than what is
measured. Printed, as JSON: the median in ms a step, and the median of what is added in percent, with its 95 % interval.
"""

from __future__ import annotations

import json
import statistics
import time

import torch
from vramscope import recording

STEPS, ROUNDS = 20, 100

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


def without() -> float:
    recorder.steps.unhook()
    recorder.sampler._pause()
    taken = timed()
    recorder.steps.hook(torch)
    recorder.sampler._resume()
    return taken


def with_history_of_torch() -> float:
    recorder.steps.unhook()
    recorder.sampler._pause()
    torchs(stacks="python", max_entries=200_000)
    taken = timed()
    torchs(enabled=None)
    recorder.steps.hook(torch)
    recorder.sampler._resume()
    return taken


def in_a_window() -> float:
    recorder.history.switch_on()
    taken = timed()
    recorder.history.switch_off()
    return taken


def interval(values: list[float]) -> list[float]:
    """The median between the ends of its 95 % interval, by ranks."""
    ordered, n = sorted(values), len(values)
    off = int(0.98 * n**0.5)
    return [round(ordered[at], 2) for at in (n // 2 - off, n // 2, min(n - 1, n // 2 + off))]


ways = {"watching": timed, "in a window": in_a_window, "torch's own history": with_history_of_torch}
times: dict[str, list[float]] = {"without": [without()]}
more: dict[str, list[float]] = {name: [] for name in ways}
for _ in range(ROUNDS):
    for name, way in ways.items():
        taken = way()
        before = times["without"][-1]
        times["without"].append(without())
        times.setdefault(name, []).append(taken)
        more[name].append((taken / ((before + times["without"][-1]) / 2) - 1) * 100)
medians = {name: round(statistics.median(values), 4) for name, values in times.items()}
print(json.dumps({"ms_a_step": medians, "percent_more": {name: interval(values) for name, values in more.items()}}, indent=1))
