"""What the handlers of the program's signals raise while code of ours runs: it is the program's, and must reach it.

Python runs a handler at the next step of whatever Python code the main thread is in.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

#: Where the code lies that runs on our behalf: ours, the standard library's, torch's.
_OURS = (os.path.dirname(os.path.abspath(__file__)) + os.sep, os.path.dirname(os.path.abspath(os.__file__)) + os.sep, "<frozen ")


def is_of_the_program(error: BaseException) -> bool:
    """Whether an error that arose in code of ours came from a handler of the program's."""
    if not isinstance(error, Exception):
        return True
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    ours = (*_OURS, os.path.dirname(torch) + os.sep) if torch else _OURS
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        # What is installed lies below the standard library.
        if not file.startswith(ours) or ("site-packages" in file and not file.startswith((ours[0], *ours[3:]))):
            return True
        trace = trace.tb_next
    return False


def deferring(function: Callable[..., Any], fork: str | None = None) -> Callable[..., None]:
    """A function for the interpreter to call between the program's steps; what is the program's is raised after it.

    Around a fork, for ``before``, ``after`` and in the ``child``, it is raised after the fork.
    """
    try:
        from vramscope import _native
    except ImportError:
        return function
    return _native.deferring(function, is_of_the_program, fork)
