"""What is said at the end of a recorded program: what `vramscope analyze` finds in the recording."""

from __future__ import annotations

import contextlib
import os

from vramscope.directory import ENVIRONMENT, STATISTICS
from vramscope.options import Options
from vramscope.place import rank
from vramscope.saying import write

REPORT = "report.txt"


def say(options: Options, torch_was_there: bool) -> None:
    """Print the verdict on the standard error, after everything that the program wrote there."""
    if options.quiet or rank() not in (None, 0):
        return
    if not os.path.isdir(options.directory):
        if not torch_was_there:
            write("vramscope: nothing was recorded: the program did not import torch\n")
        return
    where = os.path.relpath(options.directory)
    try:
        text = report(options.directory)
    except (OSError, RuntimeError) as error:
        write(f"vramscope: recorded in {where}, but {error}\n")
    else:
        write(f"\n{text.rstrip()}\n\nvramscope: recorded in {where}; more: vramscope analyze {where} --verbose\n")


def end_and_say() -> None:
    """End the recording of this process and print the verdict, while the program goes on. Nothing fails that is not ours."""
    from vramscope import recording

    recorder = recording.current
    if recorder is None:
        return
    recording.end("stop")
    if recorder.directory is not None:
        say(recorder.options, torch_was_there=True)


def report(path: str) -> str:
    """The text of ``vramscope analyze`` on a recording, which also stays in it, on a directory of them, or on a snapshot.

    Raises:
        RuntimeError: where there is nothing, or where it could not be analysed; why was written to the standard error then.
    """
    if not os.path.exists(path):
        raise RuntimeError(f"`{path}` does not exist")
    if os.path.isdir(path) and not any(files for _, _, files in os.walk(path)):
        raise RuntimeError(f"`{path}` has nothing to analyse yet")
    from vramscope import _native

    # Not into the recording, which may have come to lie where nothing can be written.
    memory = os.memfd_create("vramscope-report", os.MFD_CLOEXEC)
    try:
        output = f"/proc/self/fd/{memory}"
        status = _native.main(["vramscope", "analyze", path, "--quiet", "--color", "never", "--output", output, "--force"])
        if status not in (0, 1):
            raise RuntimeError(f"`{path}` could not be analysed")
        with open(output, encoding="utf-8") as file:
            text = file.read()
    finally:
        os.close(memory)
    if any(os.path.exists(os.path.join(path, name)) for name in (ENVIRONMENT, STATISTICS)):
        _keep(path, text)
    return text


def _keep(directory: str, text: str) -> None:
    # Hidden until it is whole.
    new = os.path.join(directory, f".{REPORT}.{os.getpid()}")
    try:
        with open(new, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(new, os.path.join(directory, REPORT))
    except OSError:
        # It can be made again.
        with contextlib.suppress(OSError):
            os.remove(new)
