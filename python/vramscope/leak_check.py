"""Whether a piece of code leaks: it is run again and again, and what grows each time leaks.

Source of the rule: BLeak (Vilk and Berger, PLDI 2018) finds leaks by what grows on every round trip; two rounds alone
always seem to grow.
"""

from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import Callable, NamedTuple

from vramscope import allocation_sites, collector, live
from vramscope.allocation_sites import Site
from vramscope.quantity import format_bytes

#: Rounds that can tell growth from chance, at least.
FEWEST = 3
#: Holders and lines that are shown.
SHOWN = 3


class LeakCheck:
    """Runs a function ``warmup + steps`` times at most, and looks at the memory after each."""

    def __init__(self, steps: int = 5, warmup: int = 2, allow_cycles: bool = False) -> None:
        """How often it runs, and what it lets pass.

        Args:
            steps: Rounds that count; 3 or more, as fewer cannot tell growth from chance.
            warmup: Rounds before, in which caches and lazy state may fill.
            allow_cycles: Whether memory may wait in reference cycles for Python's collector.

        Raises:
            ValueError: where there are too few rounds.
            TypeError: where they are no whole numbers.
        """
        for name, value in (("steps", steps), ("warmup", warmup)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be a whole number of rounds, not {value!r}")
        if steps < FEWEST:
            raise ValueError(f"steps must be {FEWEST} or more, as fewer cannot tell growth from chance, not {steps}")
        if warmup < 1:
            raise ValueError(f"warmup must be 1 or more, as the first round fills caches, not {warmup}")
        self.steps = steps
        self.warmup = warmup
        self.allow_cycles = allow_cycles

    def run(self, function: Callable[[], object]) -> Leak | None:
        """Runs it; returns the leak, or nothing where there is none.

        Once a round leaves no more than the one before there is none, and the rest is not run.
        """
        with collector.at_rest():
            for _ in range(self.warmup):
                function()
            gc.collect()
            readings = [live.Reading()]
            grown = list(readings[0].bytes)
            sites: list[Site] = []
            for round_number in range(1, self.steps + 1):
                is_last = round_number == self.steps
                with allocation_sites.watched() if is_last else nullcontext(list) as look:
                    function()
                    # Of the first round and the last two is asked who holds it.
                    readings.append(live.Reading(with_holders=round_number in (1, self.steps - 1, self.steps)))
                    grown = [device for device in grown if _grows([reading.bytes.get(device, 0) for reading in readings])]
                    if not grown:
                        return None
                    # The evidence is still there: the collector has not run.
                    sites = look()
            live_bytes = [sum(reading.bytes.get(device, 0) for device in grown) for reading in readings]
            gc.collect()
            collected = live.Reading()
        freed = live_bytes[-1] - sum(collected.bytes.get(device, 0) for device in grown)
        cycles = freed * 2 >= live_bytes[-1] - live_bytes[0]
        if cycles and self.allow_cycles:
            return None
        return Leak(live_bytes, grown, _growing(readings), sites, freed if cycles else 0, readings[-1].no_holders)


class Grown(NamedTuple):
    """A holder that held more at each look."""

    key: live.Key
    #: At the last look.
    held: live.Held
    #: Bytes that it held more at the last look than at the first one.
    more_bytes: int


class Leak(NamedTuple):
    """Memory that grew in each round."""

    #: Bytes that were live before the first round that counts, and after each.
    readings: list[int]
    devices: list[str]
    #: Most growth first.
    holders: list[Grown]
    #: Lines that made what stayed of the last round, most bytes first; empty where that is not known.
    sites: list[Site]
    #: Bytes that Python's collector freed, where it freed most of the growth.
    freed: int
    #: Why nobody could look for holders.
    no_holders: str = ""

    def text(self) -> str:
        """What a failing test says."""
        rounds = len(self.readings) - 1
        grown = self.readings[-1] - self.readings[0]
        lines = [
            f"memory of tensors grows every time: {format_bytes(grown)} in {rounds} rounds on {', '.join(self.devices)}",
            "  live before, and after each round: " + ", ".join(map(format_bytes, self.readings)),
        ]
        if self.freed:
            freed = format_bytes(self.freed)
            lines.append(f"  reference cycle: {freed} of it went when Python's collector ran; until then nothing else can use it")
        for holder in self.holders[:SHOWN]:
            held = f"{format_bytes(holder.held.bytes)} in {_counted(holder.held.blocks, 'block')}"
            lines.append(f"  held by {holder.key}: {held}, {format_bytes(holder.more_bytes)} more than after the first round")
        if self.no_holders:
            lines.append(f"  who holds it could not be found: {self.no_holders}")
        elif not self.holders:
            lines.append("  no Python object was found that holds more each time: it may be held by C++")
        of_what = "tensor" if self.devices == ["cpu"] else "block"
        for site in self.sites[:SHOWN]:
            lines.append(f"  made at {site.line}: {format_bytes(site.bytes)} in {_counted(site.pieces, of_what)} of the last round")
        return "\n".join(lines)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _grows(readings: list[int]) -> bool:
    return all(later > earlier for earlier, later in zip(readings, readings[1:]))


def _growing(readings: list[live.Reading]) -> list[Grown]:
    """Who held more each time that somebody looked, after the first round and later; most growth first."""
    looks = [reading.holders for reading in readings[1:] if reading.holders is not None]
    if len(looks) < 2:
        return []
    nothing = live.Held(0, 0)
    rows = []
    for key, held in looks[-1].items():
        figures = [look.get(key, nothing).bytes for look in looks]
        if _grows(figures):
            rows.append(Grown(key, held, figures[-1] - figures[0]))
    return sorted(rows, key=lambda row: -row.more_bytes)
