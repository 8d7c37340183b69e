#!/usr/bin/env python3
"""Times the reading of a large graph of the backward pass beside Python's own way through it, in one run.

    PYTHONPATH=python scripts/bench_autograd_read.py [-n 5] [--functions 200000]

The graph is a chain with side branches: about one function in two saves tensors, as in a model. Python's way is a loop over `next_functions`, which sees functions and
nothing of what they saved. From torch 2.13 on it also leaves an object behind for each, and a chain as long as this one then overflows the stack when it is freed: so it runs in a
forked child that frees nothing. Both run in turns, each as often as said, and the median counts.
"""
from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time

import torch

from vramscope import _native


def build(functions: int) -> torch.Tensor:
    """A graph with about this many functions; four in each round, and a leaf in every hundredth."""
    scale = torch.ones(1, requires_grad=True)
    value = scale * 1.0
    for number in range(functions // 4):
        value = (value * scale).sin() + value.neg() if number % 100 else value * torch.ones(1, requires_grad=True)
    return value


def by_python(loss: torch.Tensor) -> tuple[float, int]:
    """Seconds, and functions seen, as a child of this process measures them."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(loop(loss)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        seconds, seen = json.load(answer)
    os.waitpid(child, 0)
    return seconds, seen


def loop(loss: torch.Tensor) -> tuple[float, int]:
    started = time.perf_counter()
    seen, waiting = {loss.grad_fn}, [loss.grad_fn]
    while waiting:
        for function, _ in waiting.pop().next_functions:
            if function is not None and function not in seen:
                seen.add(function)
                waiting.append(function)
    return time.perf_counter() - started, len(seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--functions", type=int, default=200_000, help="functions in the graph (default 200000)")
    arguments = parser.parse_args()
    started = time.perf_counter()
    _native.torch_layout()
    print(f"torch {torch.__version__}; learning the layout, once: {time.perf_counter() - started:.3f} s")
    loss = build(arguments.functions)
    gc.collect()
    gc.disable()
    native, python = [], []
    for _ in range(arguments.n):
        seconds, (tensors, storages, functions, edges) = _native.torch_graph_size([loss])
        native.append(seconds)
        seconds, seen = by_python(loss)
        python.append(seconds)
    assert functions == seen, (functions, seen)
    print(f"native  {statistics.median(native):.3f} s  {functions:,} functions, {tensors:,} tensors, {storages:,} storages, {edges:,} references")
    print(f"python  {statistics.median(python):.3f} s  {seen:,} functions, nothing else")


if __name__ == "__main__":
    main()
