"""The beginning of a recorded process: the environment is made as it was, and torch is waited for.

Nothing is imported here that Python has not imported at its start anyway: a program may have a ``json.py`` or a
``random.py`` of its own, and must get that.
"""

from __future__ import annotations

import atexit
import os
import sys

from vramscope import saying, torch_import
from vramscope.launcher_names import ON_START, PYTHONPATH, SETTINGS
from vramscope.options import Options


def begin() -> None:
    """Record this process if it was asked for."""
    text = os.environ.get(SETTINGS)
    if text is None:
        return
    saying.remember_standard_error()
    options = Options.from_text(text)
    if not options.children:
        restore_environment()
    if options.pid == os.getpid():
        atexit.register(_last_words, options)
    torch_import.call_when_imported(lambda torch: _record(options, torch))


def restore_environment() -> None:
    """Leave the environment as it would be without vramscope."""
    paths = os.environ.pop(PYTHONPATH, None)
    os.environ.pop(SETTINGS, None)
    if paths is not None:
        os.environ["PYTHONPATH"] = paths
    elif os.environ.get("PYTHONPATH") == ON_START:
        del os.environ["PYTHONPATH"]


def _record(options: Options, torch: object) -> None:
    try:
        from vramscope import recording

        recording.begin(options, torch)
    except Exception as error:
        from vramscope.saying import say

        say(options, f"nothing is recorded: {type(error).__name__}: {error}")


def _last_words(options: Options) -> None:
    """What is said at the very end, after all that the program does at its exit."""
    if options.pid != os.getpid():
        return
    try:
        from vramscope import verdict

        verdict.say(options, "torch" in sys.modules)
    except BaseException:
        # The program has ended; its exit status is its own.
        pass
