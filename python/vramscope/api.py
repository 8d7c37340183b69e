"""The functions of the package. Light to import: what they need is imported when they are called."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    import torch

    from vramscope._native import Holders
    from vramscope.recorder import Recorder


def start(
    *,
    out: str = ".vramscope",
    steps: int = 60,
    stacks: str = "python",
    always: bool = False,
    max_entries: int = 200_000,
    max_disk_bytes: int = 2 << 30,
    quiet: bool = False,
) -> None:
    """Begin to record this process; where it is recorded already, record a window of history from now on.

    Best called before the first tensor is made on the device, so that all memory has its stack. Without torch nothing
    happens.

    Args:
        out: Directory that recordings are put into; each gets one of its own in it.
        steps: Steps in a window of history.
        stacks: ``"python"``, ``"all"`` (C++ too; slow to write) or ``"none"``.
        always: Record history all the time.
        max_entries: Events of history that are kept; older ones are overwritten.
        max_disk_bytes: Bytes on the disk that the recording may take.
        quiet: Say nothing on the standard error.

    Raises:
        ValueError: where a setting can mean nothing.
    """
    if stacks not in ("python", "all", "none"):
        raise ValueError(f'stacks must be "python", "all" or "none", not {stacks!r}')
    for name, value in (("steps", steps), ("max_entries", max_entries), ("max_disk_bytes", max_disk_bytes)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    recorder = _recorder()
    if recorder is not None and recorder.is_on:
        recorder.want_window("start")
        return
    from vramscope import recording, saying, torch_import
    from vramscope.options import Options

    saying.remember_standard_error()
    options = Options()
    options.out, options.steps, options.stacks, options.always = out, steps, stacks, always
    options.max_entries, options.max_disk_bytes, options.quiet = max_entries, max_disk_bytes, quiet
    torch_import.call_when_imported(lambda torch: recording.begin(options, torch))


def stop() -> str | None:
    """End the recording and save what it has.

    Returns:
        The directory of the recording; None where nothing was recorded.
    """
    recorder = _recorder()
    if recorder is None:
        return None
    from vramscope import recording

    recording.end("stop")
    return recorder.options.directory if recorder.directory is not None else None


def is_recording() -> bool:
    """Whether this process is recorded now, by ``vramscope run`` or :func:`start`."""
    recorder = _recorder()
    return recorder is not None and recorder.is_on


def step() -> None:
    """Say that a step of the program has ended. From the first call on, only this counts as a step."""
    recorder = _recorder()
    if recorder is not None:
        recorder.steps.explicit()


def snapshot(path: str | None = None) -> str | None:
    """Save a snapshot of the CUDA allocator now: its state, and its history where that is recorded.

    Args:
        path: File to write; without it, one in the recording, with holders beside it. Where CUDA is not in use, there is no
            allocator to take a snapshot of: then a recording gets holders alone, and a path nothing, with a warning.

    Returns:
        The file; None where none was written.
    """
    recorder = _recorder()
    if path is None:
        return recorder.save(f"snapshot{_next_number()}") if recorder is not None else None
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        import warnings

        warnings.warn(f"CUDA is not in use, so there is no snapshot to write to {path}", RuntimeWarning, stacklevel=2)
        return None
    import pickle

    content = torch.cuda.memory._snapshot()
    with open(path, "wb") as file:
        pickle.dump(content, file, protocol=4)
    return path


def holders(min_bytes: int = 0, device: int | str | torch.device | None = None) -> Holders:
    """Find who holds the memory of tensors in this process.

    Args:
        min_bytes: Holders of fewer bytes are summed into one row for each class.
        device: Look at this device only: ``1``, ``"cuda:1"``, ``"cuda"`` (all) or ``"cpu"``. Without it, all CUDA devices
            where CUDA is in use, and the CPU otherwise.

    Returns:
        An object that prints as text and has ``to_dict()`` (schema ``vramscope.holders/1``).

    Raises:
        RuntimeError: where this build of vramscope cannot look.
    """
    from vramscope import holding

    return holding.find(min_bytes, device)


def watch(thing: object, reason: str) -> None:
    """Say that an object should be gone now: where it is not, holders call what keeps it suspect.

    Args:
        thing: Any object that weak references can be made to; it is not kept.
        reason: Why it should be gone, for people: ``"its request has been answered"``.
    """
    from vramscope import holding

    holding.watch(thing, reason)


class phase:
    """A named part of the program: ``with vramscope.phase("evaluation"): …``.

    Its name is written with the figures of the steps in it, and into torch's history where that is recorded.
    """

    def __init__(self, name: str) -> None:
        # A comma or a line's end would break the table that it is written to.
        self.name = " ".join(str(name).replace(",", " ").split())
        self._before = ""
        self._annotation: Any = None

    def __enter__(self) -> phase:
        recorder = _recorder()
        if recorder is not None:
            self._before = recorder.phase
            recorder.enter_phase(self.name, began=True)
            if recorder.history is not None and recorder.history.is_on:
                self._annotation = recorder.torch.profiler.record_function(self.name)
                self._annotation.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._annotation is not None:
            self._annotation.__exit__(kind, error, trace)
            self._annotation = None
        recorder = _recorder()
        if recorder is not None:
            recorder.enter_phase(self._before, began=False)


def report(path: str | None = None) -> str:
    """What ``vramscope analyze`` says of a recording.

    Args:
        path: A recording, a directory of them or a snapshot; without it, the recording of this process so far, with what is
            held now.

    Raises:
        RuntimeError: where there is nothing to analyse, or it could not be.
    """
    from vramscope import verdict

    if path is None:
        recorder = _recorder()
        if recorder is None or recorder.directory is None:
            raise RuntimeError("nothing is recorded in this process; begin with vramscope.start()")
        recorder.save(f"snapshot{_next_number()}")
        recorder.write_out()
        path = recorder.directory.path
    return verdict.report(path)


_snapshots = 0


def _next_number() -> int:
    global _snapshots
    _snapshots += 1
    return _snapshots


def _recorder() -> Recorder | None:
    recording = sys.modules.get("vramscope.recording")
    return recording.current if recording is not None else None
