"""Whether allocated memory grows from step to step, told from one figure a step. Pure: figures in, an opinion out.

It decides only when a window of history is worth recording; what is said about the program rests on the history.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

#: Readings in the smallest block.
BLOCK = 5
#: Blocks that are kept; when there are more, neighbours are put together.
MOST_BLOCKS = 64
#: Blocks at the beginning that are left out: caches fill, optimizers create their state.
WARM_UP = 2
#: Blocks that are needed for an opinion.
FEWEST = 6
#: Blocks between two looks.
LOOK_EVERY = 4
#: Growth over the blocks looked at that is worth a window, in bytes.
LEAST_GAIN = 1 << 20
#: How often the gain must be as large as what the floors stray from the line.
OVER_NOISE = 4.0
#: Share of neighbouring floors that must not fall.
RISING = 0.75

#: Rises in a row that make the long side of a tooth.
LONG_SIDE = 4
#: Share of its rise that a tooth loses at its end.
LOST = 0.5
#: Bytes of a tooth that is worth a window.
LEAST_TOOTH = 8 << 20
#: Teeth that are needed, and the share of readings that they must make up.
TEETH, SHARE = 3, 0.6


class Growth(NamedTuple):
    """That memory seems to grow."""

    #: ``growth`` or ``sawtooth``.
    kind: str
    #: Bytes a step.
    bytes_per_step: float
    #: Bytes over the steps looked at; of a sawtooth, of its smallest tooth.
    gain_bytes: int


class Trend:
    """Takes one reading of allocated bytes after the other and keeps a bounded summary: the floors of blocks of steps."""

    def __init__(self) -> None:
        self.length = BLOCK
        #: Middle step and smallest reading of each whole block.
        self.floors: list[tuple[float, int]] = []
        self.teeth = Teeth()
        self._first = self._n = self._floor = 0
        self._unseen = 0

    def add(self, step: int, allocated: int) -> bool:
        """Take a reading. Returns whether it is time to look at :meth:`growth`."""
        tooth = self.teeth.add(step, allocated)
        if self._n == 0:
            self._first, self._floor = step, allocated
        elif allocated < self._floor:
            self._floor = allocated
        self._n += 1
        if self._n < self.length:
            return tooth
        self.floors.append(((self._first + step) / 2, self._floor))
        self._n = 0
        self._unseen += 1
        if len(self.floors) >= MOST_BLOCKS:
            self._halve()
        if self._unseen >= LOOK_EVERY:
            self._unseen = 0
            return True
        return tooth

    def growth(self) -> Growth | None:
        """What the readings look like; None where nothing is seen to grow."""
        return rising(self.floors[WARM_UP:]) or self.teeth.growth()

    def _halve(self) -> None:
        pairs = zip(self.floors[::2], self.floors[1::2])
        self.floors = [((a[0] + b[0]) / 2, min(a[1], b[1])) for a, b in pairs]
        self.length *= 2


def rising(floors: list[tuple[float, int]]) -> Growth | None:
    """Whether the newer half of the floors rises steadily, by more than noise, with the slope of Theil and Sen (1968)."""
    recent = floors[-max(FEWEST, len(floors) // 2) :]
    if len(recent) < FEWEST:
        return None
    pairs = list(zip(recent, recent[1:]))
    if sum(b[1] >= a[1] for a, b in pairs) < RISING * len(pairs):
        return None
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(recent) for b in recent[i + 1 :] if b[0] > a[0]]
    slope = median(slopes) if slopes else 0.0
    gain = slope * (recent[-1][0] - recent[0][0])
    middle = median(y - slope * x for x, y in recent)
    noise = median(abs(y - slope * x - middle) for x, y in recent)
    if slope <= 0 or gain < max(LEAST_GAIN, OVER_NOISE * noise):
        return None
    return Growth("growth", slope, int(gain))


def median(values: Iterable[float]) -> float:
    """The middle one. Not from the standard library: what a program calls ``statistics`` is its own affair."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


class Teeth:
    """Sees memory that rises over several steps and then falls at once, again and again.

    That is what garbage does that waits for Python's collector.
    """

    def __init__(self) -> None:
        #: First and last step, and bytes, of the last teeth.
        self.last: list[tuple[int, int, int]] = []
        self._step = self._bytes = 0
        self._foot = self._foot_step = self._rises = 0

    def add(self, step: int, allocated: int) -> bool:
        """Take a reading. Returns whether a tooth ended with it."""
        before, self._bytes = self._bytes, allocated
        last_step, self._step = self._step, step
        if allocated >= before:
            if allocated > before:
                self._rises += 1
            return False
        height = before - self._foot
        is_tooth = self._rises >= LONG_SIDE and height >= LEAST_TOOTH and before - allocated >= LOST * height
        if is_tooth:
            self.last = [*self.last[1 - TEETH :], (self._foot_step, last_step, height)]
        if is_tooth or allocated <= self._foot or before - allocated >= LOST * height:
            self._foot, self._foot_step, self._rises = allocated, step, 0
        return is_tooth

    def growth(self) -> Growth | None:
        """A sawtooth, where the last readings are mostly teeth."""
        if len(self.last) < TEETH:
            return None
        steps = sum(end - start for start, end, _ in self.last)
        if steps <= 0 or steps < SHARE * (self._step - self.last[0][0]):
            return None
        return Growth("sawtooth", sum(height for *_, height in self.last) / steps, min(h for *_, h in self.last))
