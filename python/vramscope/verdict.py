"""What is said at the end of a recorded program: what `vramscope analyze` finds in the recording."""

from __future__ import annotations

import os
import sys

from vramscope.options import Options
from vramscope.place import rank

REPORT = "report.txt"


def say(options: Options, torch_was_there: bool) -> None:
    """Print the verdict on the standard error, after everything that the program wrote there."""
    if options.quiet or rank() not in (None, 0):
        return
    where = os.path.relpath(options.directory)
    if not os.path.isdir(options.directory):
        if not torch_was_there:
            _write("vramscope: nothing was recorded: the program did not import torch\n")
        return
    text = report(options.directory)
    if text is None:
        _write(f"vramscope: recorded in {where}; no snapshot was taken, as no CUDA memory was used\n")
    else:
        _write(f"\n{text.rstrip()}\n\nvramscope: recorded in {where}; more: vramscope analyze {where} --verbose\n")


def report(directory: str) -> str | None:
    """The text of ``vramscope analyze`` on a recording, which also stays in it. None where there is no snapshot yet.

    Raises:
        RuntimeError: where the recording could not be analysed.
    """
    if not _has_snapshot(directory):
        return None
    from vramscope import _native

    # Hidden, as what is read cannot be written to.
    file = os.path.join(directory, f".{REPORT}")
    status = _native.main(["vramscope", "analyze", directory, "--quiet", "--color", "never", "--output", file, "--force"])
    if status not in (0, 1):
        raise RuntimeError(f"the recording in {directory} could not be analysed")
    with open(file, encoding="utf-8") as text:
        answer = text.read()
    os.replace(file, os.path.join(directory, REPORT))
    return answer


def _has_snapshot(directory: str) -> bool:
    return any(name.endswith(".pickle") for _, _, names in os.walk(directory) for name in names)


def _write(text: str) -> None:
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except (OSError, ValueError):
        pass
    rest = text.encode()
    while rest:
        rest = rest[os.write(2, rest) :]
