"""Listens to Python's collector: where a collection gives memory of the device back, cycles held it.

The next one is a moment to see which: just before a collection the garbage is complete, just after it nothing is left of it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

from vramscope.interruption import deferring

#: A collection that frees less is not worth a look: bytes, and the share of what is allocated.
LEAST_BYTES, LEAST_SHARE = 1 << 20, 0.01
#: Only a collection of everything breaks cycles that have lived for long.
WHOLE = 2
#: So many looks in a run.
MOST_LOOKS = 4


class Collector:
    """Tells of collections that freed memory, and of moments just before the next ones."""

    def __init__(self, allocated: Callable[[], int | None], freed: Callable[[int], None], look: Callable[[int], None]) -> None:
        """What it asks, and whom it tells.

        Args:
            allocated: Bytes allocated on devices; None while there is no device.
            freed: Told how many bytes a collection freed.
            look: Called just before a collection that may free as much again, with the number of the look.
        """
        self._allocated = allocated
        self._freed = freed
        self._look = look
        self._before: int | None = None
        self._is_armed = False
        self._looks = 0
        self._callback = deferring(self._called)

    def listen(self) -> None:
        """Begin."""
        gc.callbacks.append(self._callback)

    def leave(self) -> None:
        """Listen no more."""
        if self._callback in gc.callbacks:
            gc.callbacks.remove(self._callback)

    def _called(self, phase: str, info: dict[str, Any]) -> None:
        if info["generation"] < WHOLE:
            return
        if phase == "start":
            self._before = self._allocated()
            if self._is_armed and self._before is not None and self._looks < MOST_LOOKS:
                self._is_armed = False
                self._looks += 1
                self._look(self._looks)
            return
        before, after = self._before, self._allocated()
        self._before = None
        if before is None or after is None:
            return
        if before - after >= max(LEAST_BYTES, LEAST_SHARE * before):
            self._is_armed = True
            self._freed(before - after)


@contextmanager
def at_rest() -> Iterator[None]:
    """Python's collector runs only when told to, until the body is left."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
