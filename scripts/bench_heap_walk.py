#!/usr/bin/env python3
"""Times the walk of the Python heap, beside what Python itself offers for it.

Builds a heap of some millions of objects, and then, in turns, walks it natively (nodes, references, counts of references, roots) and by
``gc.get_objects()`` with ``gc.get_referents()`` of each, which says less. Both hold the GIL all the time. What is printed are medians, on the
wall and on the processor: on a machine that is busy otherwise, the latter says more.

    PYTHONPATH=python scripts/bench_heap_walk.py [--objects 4_000_000] [--rounds 5] [--shape mixed]
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import sys
import time
from typing import Any, Callable

from vramscope import _native


class Node:
    """An instance with two attributes."""

    def __init__(self, other: Any, number: int) -> None:
        self.other = other
        self.number = number


def mixed(n: int) -> list[Any]:
    """Lists, dicts, tuples and instances in turns. Each refers to another: most to one made not long before, each eighth to any.

    All are in one list too, so there are twice as many references between them as objects.
    """
    kept: list[Any] = [[]]
    choose = random.Random(0)
    for i in range(n):
        near = len(kept)
        other = kept[int(choose.random() * near) if i % 8 == 0 else max(0, near - 1 - int(choose.random() * 1000))]
        kind = i % 4
        made: Any
        if kind == 0:
            made = [other, i]
        elif kind == 1:
            made = {"other": other}
        elif kind == 2:
            made = (other, "text")
        else:
            made = Node(other, i)
        kept.append(made)
    return kept


def lists(n: int) -> list[Any]:
    """Lists that refer to the one before them, and are in one list."""
    kept: list[Any] = [[]]
    for _ in range(n):
        kept.append([kept[-1]])
    return kept


SHAPES: dict[str, Callable[[int], list[Any]]] = {"mixed": mixed, "lists": lists}


def by_python() -> tuple[int, int]:
    """Objects and references, counted with what Python offers."""
    objects = gc.get_objects()
    referents = gc.get_referents
    edges = 0
    for one in objects:
        edges += len(referents(one))
    return len(objects), edges


class Times:
    """Seconds that calls took, on the wall and on the processor."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.processor: list[float] = []

    def of(self, function: Callable[[], Any]) -> Any:
        """Call, note how long it took, and return what the call returned."""
        wall, processor = time.perf_counter(), time.process_time()
        result = function()
        self.processor.append(time.process_time() - processor)
        self.wall.append(time.perf_counter() - wall)
        return result

    def __str__(self) -> str:
        wall, processor = statistics.median(self.wall), statistics.median(self.processor)
        return f"{wall:.3f} s ({min(self.wall):.3f} to {max(self.wall):.3f}; processor {processor:.3f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--objects", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shape", choices=SHAPES, default="mixed")
    options = parser.parse_args()
    gc.disable()
    kept = SHAPES[options.shape](options.objects)
    gc.collect()
    native, python = Times(), Times()
    figures: dict[str, Any] = {}
    counted = (0, 0)
    for _ in range(options.rounds):
        figures = native.of(_native._walk_figures)
        counted = python.of(by_python)
    print(
        f"CPython {sys.version.split()[0]}, {options.shape}: {figures['nodes']:,} objects, {figures['edges']:,} references.\n"
        f"  native {native}\n  by gc.get_objects and gc.get_referents, {counted[1]:,} references with those to other objects: {python}"
    )
    del kept


if __name__ == "__main__":
    main()
