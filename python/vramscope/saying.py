"""What vramscope says while a program runs: as little as possible, and on the standard error."""

from __future__ import annotations

import os
import sys

from vramscope.options import Options

#: Which file descriptor 2 was when the process began; None where there was none.
_standard_error: tuple[int, int] | None = None


def remember_standard_error() -> None:
    """Note where the standard error goes, so that nothing is written into what the program opens in its place later."""
    global _standard_error
    _standard_error = None if sys.stderr is None else _identity()


def _identity() -> tuple[int, int] | None:
    try:
        status = os.fstat(2)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def write(text: str) -> None:
    """Write on the standard error, after what the program has written there. Nothing if it has closed it."""
    if _standard_error is None or _identity() != _standard_error:
        return
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass
    rest = text.encode()
    try:
        while rest:
            rest = rest[os.write(2, rest) :]
    except OSError:
        pass


def say(options: Options, text: str) -> None:
    """One line on the standard error."""
    if not options.quiet:
        write(f"vramscope: {text}\n")
