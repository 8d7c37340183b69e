"""Tells of signals even while the main thread is deep in C code, where Python's handlers have to wait.

Python writes the number of each signal that it handles to a descriptor, at once. It is a high one, so that a program that
closes all descriptors and opens files anew does not get its number.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal

#: Descriptors below this one are the program's.
LOWEST = 700


class Wakeup:
    """A pipe that a thread can wait at."""

    def __init__(self) -> None:
        ends = os.pipe()
        try:
            self.reads, self.writes = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, LOWEST) for end in ends)
        finally:
            for end in ends:
                os.close(end)
        os.set_blocking(self.reads, False)
        os.set_blocking(self.writes, False)
        self._identity = self._look()
        before = signal.set_wakeup_fd(self.writes, warn_on_full_buffer=False)
        self.is_installed = before == -1
        if not self.is_installed:
            # The program, or a library, listens in this way itself.
            signal.set_wakeup_fd(before)

    def wait(self, seconds: float) -> bytes | None:
        """The numbers of the signals that came, or nothing after a while; None where the pipe is gone."""
        poll = select.poll()
        poll.register(self.reads, select.POLLIN)
        for _, what in poll.poll(seconds * 1000):
            if what != select.POLLIN or self._look() != self._identity:
                return None
            return os.read(self.reads, 64)
        return b""

    def poke(self) -> None:
        """Let the thread that waits go on."""
        if self._look() == self._identity:
            os.write(self.writes, b"\0")

    def remove(self) -> None:
        """Listen no more. In the main thread only."""
        if self.is_installed:
            now = signal.set_wakeup_fd(-1)
            if now != self.writes:
                signal.set_wakeup_fd(now)
        if self._look() == self._identity:
            os.close(self.reads)
            os.close(self.writes)
            self._identity = None

    def _look(self) -> tuple[int, int] | None:
        try:
            ends = os.fstat(self.reads), os.fstat(self.writes)
        except OSError:
            return None
        return (ends[0].st_ino, ends[1].st_ino)
