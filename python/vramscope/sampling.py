"""A thread that looks after the recording between steps: it sleeps, writes what waits, and reads figures where no step does."""

from __future__ import annotations

import os
import threading
import time
from typing import Any


class Sampler:
    """Calls ``recorder.tick()`` again and again. It is gone while the process forks, so that the child is born as it would be."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.stopped = threading.Event()
        self.thread: threading.Thread | None = None
        self._owner = os.getpid()
        self._is_wanted = False

    def start(self) -> None:
        """Begin to call."""
        if not self._is_wanted:
            self._is_wanted = True
            os.register_at_fork(before=self._pause, after_in_parent=self._resume_after_fork, after_in_child=self._in_child)
            self._resume()

    def stop(self) -> None:
        """Call no more, and wait for a call in progress."""
        self._is_wanted = False
        self._pause()

    def _run(self, stopped: threading.Event) -> None:
        wait_s = 0.1
        while not stopped.is_set():
            if self._sleep(stopped, wait_s):
                wait_s = self.recorder.tick()

    def _sleep(self, stopped: threading.Event, seconds: float) -> bool:
        """Wait, and see to signals that come. Whether it is time to go on."""
        signals = self.recorder.signals
        wakeup = signals.wakeup
        if wakeup is None:
            return not stopped.wait(seconds)
        try:
            numbers = wakeup.wait(seconds)
        except OSError:
            numbers = None
        if numbers is None:
            # The program has closed it.
            signals.wakeup = None
        elif numbers.strip(b"\0"):
            signals.came(numbers, self.recorder.flush_now)
        return not stopped.is_set()

    def _pause(self) -> None:
        thread, self.thread = self.thread, None
        if thread is not None and os.getpid() == self._owner and thread is not threading.current_thread():
            self.stopped.set()
            wakeup = self.recorder.signals.wakeup
            if wakeup is not None:
                wakeup.poke()
            thread.join()
            _wait_until_gone(thread.native_id)

    def _resume_after_fork(self) -> None:
        # Python 3.13 counts threads only now, to warn of forks of processes with several. Where ours would be the only other
        # one, it waits for the next step.
        if len(os.listdir("/proc/self/task")) > 1:
            self._resume()

    def resume(self) -> None:
        """Go on after a fork, if that was put off."""
        if self.thread is None:
            self._resume()

    def _resume(self) -> None:
        if self._is_wanted and os.getpid() == self._owner:
            self.stopped = threading.Event()
            self.thread = threading.Thread(target=self._run, args=(self.stopped,), name="vramscope", daemon=True)
            self.thread.start()

    def _in_child(self) -> None:
        self._is_wanted = False
        self.thread = None
        self.recorder.forget()


def _wait_until_gone(thread: int | None) -> None:
    """A thread is joined a moment before the system has ended it; a fork in that moment is warned of."""
    for _ in range(10_000):
        if not os.path.exists(f"/proc/self/task/{thread}"):
            break
        time.sleep(0.0002)
