"""A thread that looks after the recording between steps: it sleeps, writes what waits, and reads figures where no step does.

To the program it should be as if it were not there: it is none of ``threading``'s, takes no signals, and is gone while the
process forks.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
from time import sleep
from typing import Any

from vramscope.interruption import deferring

#: Bytes of the thread's stack, whatever the program has set for its own.
STACK_BYTES = 1 << 20


class Sampler:
    """Calls ``recorder.tick()`` again and again. It is gone while the process forks, so that the child is born as it would be."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self._run: _Run | None = None
        self._owner = os.getpid()
        self._is_wanted = False
        #: Threads fork one after the other. Held from before a fork until after it.
        self._forking = _thread.allocate_lock()
        self._mask: set[Any] | None = None

    def start(self) -> None:
        """Begin to call."""
        if not self._is_wanted:
            self._is_wanted = True
            os.register_at_fork(
                before=deferring(self._before_fork, "before"),
                after_in_parent=deferring(self._after_fork, "after"),
                after_in_child=deferring(self._in_child, "child"),
            )
            self._resume()

    def stop(self) -> None:
        """Call no more, and wait for a call in progress."""
        self._is_wanted = False
        self._pause()

    def resume(self) -> None:
        """Go on after a fork, if that was put off."""
        if self._run is None:
            self._resume()

    def _before_fork(self) -> None:
        # In the child, Python forgets signals that come before its hooks are called. So they wait, as long as ours is the handler.
        mask, raised = _block_signals()
        self._forking.acquire()
        self._mask = mask
        if os.getpid() == self._owner:
            self._pause()
        if raised is not None:
            raise raised

    def _after_fork(self) -> None:
        try:
            # Python 3.13 counts threads only now, to warn of forks of processes with several. Where ours would be the only
            # other one, it waits for the next step.
            if self._is_wanted and os.getpid() == self._owner and len(os.listdir("/proc/self/task")) > 1:
                self.resume()
        except OSError:
            # A process may see no such directory any more.
            pass
        finally:
            self._let_signals_come()

    def _in_child(self) -> None:
        self._is_wanted = False
        self._run = None
        try:
            self.recorder.forget()
        finally:
            self._let_signals_come()

    def _let_signals_come(self) -> None:
        mask, self._mask = self._mask, None
        if mask is not None:
            self._forking.release()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _pause(self) -> None:
        run, self._run = self._run, None
        if run is not None and run.thread != _thread.get_ident():
            run.end(self.recorder.signals.wakeup)

    def _resume(self) -> None:
        if self._is_wanted and os.getpid() == self._owner:
            # A signal goes to any thread that does not refuse it, and the program may have told its own to refuse it.
            mask, raised = _block_signals()
            self._run = run = _Run(self.recorder)
            stack_bytes = threading.stack_size(STACK_BYTES)
            try:
                run.start()
            finally:
                threading.stack_size(stack_bytes)
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            if raised is not None:
                raise raised


class _Run:
    """One life of the thread."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.thread = 0
        self._native = 0
        self._stopped = threading.Event()
        self._is_over = _thread.allocate_lock()

    def start(self) -> None:
        self._is_over.acquire()
        try:
            self.thread = _thread.start_new_thread(self._work, ())
        except RuntimeError:
            # No thread can be had: then steps do what it would.
            self._is_over.release()

    def end(self, wakeup: Any) -> None:
        """Let it end, and wait for that."""
        self._stopped.set()
        if wakeup is not None:
            wakeup.poke()
        self._is_over.acquire()
        self._is_over.release()
        _wait_until_gone(self._native)

    def _work(self) -> None:
        self._native = _thread.get_native_id()
        try:
            wait_s = 0.1
            while not self._stopped.is_set():
                if self._sleep(wait_s):
                    wait_s = self.recorder.tick()
        finally:
            self._is_over.release()

    def _sleep(self, seconds: float) -> bool:
        """Wait, and see to signals that come. Whether it is time to go on."""
        signals = self.recorder.signals
        wakeup = signals.wakeup
        if wakeup is None:
            return not self._stopped.wait(seconds)
        try:
            numbers = wakeup.wait(seconds)
        except OSError:
            numbers = None
        if numbers is None:
            # The program has closed it.
            signals.wakeup = None
        elif numbers.strip(b"\0"):
            signals.came(numbers, self.recorder.flush_now)
        return not self._stopped.is_set()


def _block_signals() -> tuple[set[Any], BaseException | None]:
    """Let all signals wait. Returns those that waited before, and what a handler raised.

    Each of these calls has the handlers run that are due, and does its work all the same: so what was before is asked first.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    except BaseException as error:
        return before, error
    return before, None


def _wait_until_gone(thread: int) -> None:
    """A thread has ended its work a moment before the system has ended it; a fork in that moment is warned of."""
    for _ in range(10_000):
        if not thread or not os.path.exists(f"/proc/self/task/{thread}"):
            break
        sleep(0.0002)
