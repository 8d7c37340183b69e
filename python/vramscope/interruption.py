"""What the handlers of the program's signals raise while code of ours runs: it is the program's, and must reach it.

Python runs a handler at the next step of whatever Python code the main thread is in.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

#: Where our code lies, and where the standard library's does.
_PACKAGE, _STANDARD_LIBRARY = (os.path.dirname(os.path.abspath(file)) + os.sep for file in (__file__, os.__file__))


def is_of_the_program(error: BaseException) -> bool:
    """Whether an error that arose in code of ours came from a handler of the program's."""
    if not isinstance(error, Exception):
        return True
    trace = error.__traceback__
    while trace is not None:
        if not _works_for_us(trace.tb_frame.f_code.co_filename):
            return True
        trace = trace.tb_next
    return False


def _works_for_us(file: str) -> bool:
    """Whether code of this file runs on our behalf: ours, torch's, or the standard library's."""
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    if file.startswith(_PACKAGE) or (torch and file.startswith(os.path.dirname(torch) + os.sep)):
        return True
    # What is installed lies below the standard library.
    return file.startswith((_STANDARD_LIBRARY, "<frozen ")) and "site-packages" not in file


def deferring(function: Callable[..., Any], fork: str | None = None) -> Callable[..., None]:
    """A function for the interpreter to call between the program's steps; what is the program's is raised after it.

    Around a fork, for ``before``, ``after`` and in the ``child``, it is raised after the fork.
    """
    try:
        from vramscope import _native
    except ImportError:
        return function
    return _native.deferring(function, is_of_the_program, fork)
