"""The recording of this process, of which there is one at most, and how it ends with the process."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
from typing import TYPE_CHECKING, Any

from vramscope.options import Options
from vramscope.saying import say

if TYPE_CHECKING:
    from vramscope.recorder import Recorder

#: The recorder, while there is one.
current: Recorder | None = None


def begin(options: Options, torch: Any) -> Recorder:
    """Begin to watch this process; what is written is written once something happens."""
    global current
    from vramscope.recorder import Recorder

    recorder = current = Recorder(options, torch)
    recorder.listen()
    # Registered late, so that it is called early, while what the program holds is still there.
    atexit.register(_at_exit, recorder)
    _save_before_leaving_at_once(recorder)
    return recorder


def end(reason: str) -> None:
    """End the recording while the program goes on."""
    global current
    recorder, current = current, None
    if recorder is not None:
        recorder.stop(reason)
        atexit.unregister(_at_exit)


def _at_exit(recorder: Recorder) -> None:
    if os.getpid() != recorder.pid:
        return
    try:
        # Python leaves an error that nobody handled here.
        error = getattr(sys, "last_type", None)
        recorder.close("exception" if error else "exit", **({"error": error.__name__} if error else {}))
        recorder.leave()
    except Exception as error:
        say(recorder.options, f"the end was not recorded: {type(error).__name__}: {error}")


def _save_before_leaving_at_once(recorder: Recorder) -> None:
    """``os._exit`` skips all that is done at an exit."""
    leave = os._exit

    @functools.wraps(leave)
    def exit_at_once(status: int) -> Any:
        if os.getpid() == recorder.pid and recorder.is_on:
            with contextlib.suppress(Exception):
                recorder.close("os._exit", status=status)
        return leave(status)

    os._exit = exit_at_once
