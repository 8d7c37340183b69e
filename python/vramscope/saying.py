"""What vramscope says while a program runs: as little as possible, and on the standard error."""

from __future__ import annotations

import os
import sys

from vramscope.options import Options


def say(options: Options, text: str) -> None:
    """One line on the standard error."""
    if options.quiet:
        return
    try:
        sys.stderr.flush()
        os.write(2, f"vramscope: {text}\n".encode())
    except (OSError, ValueError, AttributeError):
        pass
