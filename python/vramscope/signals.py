"""Signals that the recorder listens to, where the program leaves them alone.

SIGTERM: what was recorded is saved, then the process dies of the signal as it would have. SIGUSR2: a window is opened.
To the program it looks as if no handler were there, so that one which looks before it sets its own finds what it expects.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
import time
from typing import Any, Callable

from vramscope.wakeup import Wakeup

#: Seconds that the main thread has to see SIGTERM; then another one does what it asks for.
PATIENCE_S = 1.0


class Signals:
    """Our handlers, and how to take them away."""

    def __init__(self, on_term: Callable[[], bool], on_wanted: Callable[[], None]) -> None:
        self.on_term = on_term
        self.on_wanted = on_wanted
        self.owner = os.getpid()
        self.ours: dict[int, Any] = {}
        self.wakeup: Wakeup | None = None
        self._is_seen = False
        self._signal, self._getsignal, self._set_wakeup_fd = signal.signal, signal.getsignal, signal.set_wakeup_fd

    def listen(self) -> list[str]:
        """Set handlers where the default is in force. Returns the names of the signals listened to."""
        if threading.get_ident() != threading.main_thread().ident:
            return []
        wanted = ((signal.SIGTERM, self._term), (signal.SIGUSR2, self._usr2))
        for number, handler in wanted:
            if self._getsignal(number) == signal.SIG_DFL:
                self.ours[number] = handler
                self._signal(number, handler)
        if self.ours:
            self._hide()
        if signal.SIGTERM in self.ours:
            # A process may have few descriptors: then SIGTERM waits for the main thread.
            with contextlib.suppress(OSError):
                self.wakeup = Wakeup()
        return [signal.Signals(number).name for number in self.ours]

    def leave(self) -> None:
        """Put the defaults back where our handlers are still in force.

        In another thread than the main one nothing can be done; the handlers then do nothing but what the default does.
        """
        if threading.get_ident() != threading.main_thread().ident:
            return
        for number in list(self.ours):
            if self._is_installed(number):
                self._signal(number, signal.SIG_DFL)
        self.ours.clear()
        wakeup, self.wakeup = self.wakeup, None
        if wakeup is not None:
            wakeup.remove()
        if getattr(signal.signal, "__wrapped__", None) is self._signal:
            signal.signal = self._signal
        if getattr(signal.getsignal, "__wrapped__", None) is self._getsignal:
            signal.getsignal = self._getsignal
        if getattr(signal.set_wakeup_fd, "__wrapped__", None) is self._set_wakeup_fd:
            signal.set_wakeup_fd = self._set_wakeup_fd

    def came(self, numbers: bytes, save: Callable[[], None]) -> None:
        """In another thread: signals came. Where the main thread is stuck in C code, SIGTERM ends the process from here."""
        if signal.SIGTERM not in numbers or not self._is_installed(signal.SIGTERM):
            return
        time.sleep(PATIENCE_S)
        if self._is_seen or not self._is_installed(signal.SIGTERM):
            return
        save()
        import ctypes

        # Python sets handlers in the main thread only.
        ctypes.CDLL(None).signal(int(signal.SIGTERM), ctypes.c_void_p(0))
        os.kill(os.getpid(), signal.SIGTERM)

    def _is_installed(self, number: int) -> bool:
        return self._getsignal(number) is self.ours.get(number)

    def _term(self, number: int, frame: Any) -> None:
        if not self._is_installed(number):
            # A handler of the program calls the one that it found: with the default there would have been none to call.
            return
        self._is_seen = True
        if os.getpid() == self.owner:
            try:
                if not self.on_term():
                    return
            except Exception:
                pass
        self._signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def term_now(self) -> None:
        """Do what SIGTERM asked for while there was no time."""
        self._term(signal.SIGTERM, None)

    def _usr2(self, number: int, frame: Any) -> None:
        if os.getpid() == self.owner:
            self.on_wanted()

    def _hide(self) -> None:
        ours, is_installed = self.ours, self._is_installed

        @functools.wraps(self._getsignal)
        def getsignal(signalnum: Any) -> Any:
            return signal.SIG_DFL if signalnum in ours and is_installed(signalnum) else self._getsignal(signalnum)

        @functools.wraps(self._signal)
        def set_signal(signalnum: Any, handler: Any) -> Any:
            before = self._signal(signalnum, handler)
            return signal.SIG_DFL if before is not None and before is ours.get(signalnum) else before

        @functools.wraps(self._set_wakeup_fd)
        def set_wakeup_fd(fd: int, *, warn_on_full_buffer: bool = True) -> int:
            before = self._set_wakeup_fd(fd, warn_on_full_buffer=warn_on_full_buffer)
            return -1 if self.wakeup is not None and before == self.wakeup.writes else before

        signal.getsignal, signal.signal, signal.set_wakeup_fd = getsignal, set_signal, set_wakeup_fd
