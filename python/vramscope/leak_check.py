"""Whether a piece of code leaks: it is run again and again, and what grows each time leaks.

Source of the rule: BLeak (Vilk and Berger, PLDI 2018) finds leaks by what grows on every round trip; two rounds alone always seem to grow.
"""

from __future__ import annotations

import gc
from typing import Any, Callable, Dict, List, Optional

from vramscope import collector, live
from vramscope.quantity import format_bytes

_FEWEST = 3


class LeakCheck:
    """Runs a function ``warmup + steps`` times and looks at the memory after each."""

    def __init__(self, steps: int = 5, warmup: int = 2, allow_cycles: bool = False) -> None:
        """
        :param steps: rounds that count; 3 or more, as fewer cannot tell growth from chance
        :param warmup: rounds before, in which caches and lazy state may fill
        :param allow_cycles: whether memory may wait in reference cycles for Python's collector
        """
        if steps < _FEWEST:
            raise ValueError(f"steps must be {_FEWEST} or more, as fewer cannot tell growth from chance, not {steps}")
        if warmup < 1:
            raise ValueError(f"warmup must be 1 or more, as the first round fills caches, not {warmup}")
        self.steps = steps
        self.warmup = warmup
        self.allow_cycles = allow_cycles

    def run(self, function: Callable[[], Any]) -> Optional["Leak"]:
        """Runs it; returns the leak, or nothing where there is none."""
        with collector.at_rest():
            for _ in range(self.warmup):
                function()
            gc.collect()
            after = [live.bytes_by_device()]
            paths = [_bytes_by_path()]
            for step in range(self.steps):
                function()
                after.append(live.bytes_by_device())
                if step in (0, self.steps - 2, self.steps - 1):
                    paths.append(_bytes_by_path())
            grown = [device for device in after[-1] if _grows([reading.get(device, 0) for reading in after])]
            if not grown:
                return None
            # What holds it must be looked at before the collector takes the evidence away.
            suspects = _growing_paths(paths)
            before_collection = sum(after[-1].get(device, 0) for device in grown)
            gc.collect()
            collected = live.bytes_by_device()
        freed = before_collection - sum(collected.get(device, 0) for device in grown)
        growth = before_collection - sum(after[0].get(device, 0) for device in grown)
        cycles = freed * 2 >= growth
        if cycles and self.allow_cycles:
            return None
        readings = [sum(reading.get(device, 0) for device in grown) for reading in after]
        return Leak(readings, grown, suspects, freed if cycles else 0)


class Leak:
    """Memory that grew in each round."""

    def __init__(self, readings: List[int], devices: List[str], holders: List[Any], freed: int) -> None:
        #: bytes that were live before the first round that counts, and after each
        self.readings = readings
        self.devices = devices
        #: rows of :func:`vramscope.holders` that grew, most growth first
        self.holders = holders
        #: bytes that Python's collector freed, where it freed most of the growth
        self.freed = freed

    def text(self) -> str:
        """What a failing test says."""
        rounds = len(self.readings) - 1
        grown = self.readings[-1] - self.readings[0]
        lines = [
            f"device memory grows every time: {format_bytes(grown)} in {rounds} rounds on {', '.join(self.devices)}",
            "  live after each round: " + ", ".join(format_bytes(reading) for reading in self.readings),
        ]
        if self.freed:
            lines.append(
                f"  reference cycle: {format_bytes(self.freed)} of it went when Python's collector ran; until then it is lost to the device"
            )
        for holder in self.holders[:3]:
            through = f" through the {holder['through']}" if holder["through"] else ""
            lines.append(f"  held by {holder['path']}{through}: {format_bytes(holder['bytes'])} in {holder['blocks']} blocks")
        if not self.holders:
            lines.append("  no Python object was found that holds more each time: it may be held by C++")
        return "\n".join(lines)


def _grows(readings: List[int]) -> bool:
    return all(later > earlier for earlier, later in zip(readings, readings[1:]))


def _bytes_by_path() -> Dict[Any, Any]:
    from vramscope import holders

    return {(row["path"], row["through"], row["class"]): row for row in holders().to_dict()["holders"]}


def _growing_paths(paths: List[Dict[Any, Any]]) -> List[Any]:
    """Rows of the last reading that were larger at each reading, most growth first."""

    def readings(key: Any) -> List[int]:
        return [reading[key]["bytes"] if key in reading else 0 for reading in paths]

    rows = [(figures[-1] - figures[0], row) for key, row in paths[-1].items() if _grows(figures := readings(key))]
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]
