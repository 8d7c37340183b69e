"""Which lines make the tensors that stay: watched for a stretch of code, as it costs too much to be on all the time.

On CUDA torch keeps the stack of each block in use when it is told to. On the CPU nobody keeps that of memory; there
Python's ``tracemalloc`` knows where each tensor was made that a Python object still stands for.
"""

from __future__ import annotations

import gc
import os
import sys
import sysconfig
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Callable, NamedTuple

from vramscope import live

#: Frames of a stack that are kept on the CPU.
DEPTH = 48
#: Directories of Python's own modules, and what installed ones have in their paths: nobody looks for a leak there.
_STANDARD = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib")})
_INSTALLED = ("/site-packages/", "/dist-packages/")
#: The flag of types whose objects have their attributes before them: `Py_TPFLAGS_MANAGED_DICT`.
_ATTRIBUTES_BEFORE = 1 << 4


class Site(NamedTuple):
    """A line, and what it made that is still there."""

    #: ``train.py:12``, with the function where that is known: ``train.py:12 in step``.
    line: str
    bytes: int
    #: Blocks of a CUDA device, or tensors on the CPU.
    pieces: int


class Frame(NamedTuple):
    """A line of a stack."""

    file: str
    line: int
    #: The function; empty where it is not known.
    name: str = ""


#: Looks at what was made since the watch began and is still there; most bytes first.
Look = Callable[[], "list[Site]"]


@contextmanager
def watched() -> Iterator[Look]:
    """Watch where tensors are made while the body runs; it may look at its end. Sees nothing where that cannot be told."""
    torch = live.imported_torch()
    if torch is None:
        yield list
    elif torch.cuda.is_initialized():
        with _watched_on_cuda(torch) as look:
            yield look
    else:
        with _watched_in_python(torch) as look:
            yield look


@contextmanager
def _watched_on_cuda(torch: Any) -> Iterator[Look]:
    memory = torch.cuda.memory
    is_on = getattr(torch._C, "_cuda_isHistoryEnabled", lambda: True)()
    before = _blocks(memory) if is_on else {}
    if not is_on:
        try:
            memory._record_memory_history(enabled="state", context="state", stacks="python")
        except (TypeError, RuntimeError):
            # A release that does it otherwise, or an allocator other than torch's own.
            yield list
            return

    def look() -> list[Site]:
        new = ((size, frames) for address, (size, frames) in _blocks(memory).items() if address not in before)
        return _sum_up(new)

    try:
        yield look
    finally:
        if not is_on:
            memory._record_memory_history(enabled=None)


def _blocks(memory: Any) -> dict[int, tuple[int, list[Frame]]]:
    """Size and stack of each block in use, by its address."""
    blocks: dict[int, tuple[int, list[Frame]]] = {}
    for segment in memory.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                frames = [Frame(frame["filename"], frame["line"], frame["name"]) for frame in block.get("frames", ())]
                blocks[address] = block["size"], frames
            address += block["size"]
    return blocks


@contextmanager
def _watched_in_python(torch: Any) -> Iterator[Look]:
    is_on = tracemalloc.is_tracing()
    before = {id(tensor) for tensor in _tensors(torch)} if is_on else set()

    def look() -> list[Site]:
        with torch._C.DisableTorchFunctionSubclass():
            return _sum_up(_stacks([tensor for tensor in _tensors(torch) if id(tensor) not in before]))

    if not is_on:
        tracemalloc.start(DEPTH)
    try:
        yield look
    finally:
        if not is_on:
            tracemalloc.stop()


def _tensors(torch: Any) -> list[Any]:
    # By its type alone: to ask an object what it is may run code of the program.
    return [thing for thing in gc.get_objects() if torch.Tensor in type(thing).__mro__]


def _stacks(tensors: list[Any]) -> Iterator[tuple[int, list[Frame]]]:
    seen = set()
    for tensor in tensors:
        frames = _frames(tensor)
        if not frames:
            continue
        try:
            size = tensor.numel() * tensor.element_size()
            start = tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()
        except RuntimeError:
            # One without a storage, such as a sparse one.
            size, start = 0, id(tensor)
        if start not in seen:
            seen.add(start)
            yield size, frames


def _frames(tensor: object) -> list[Frame]:
    """Where a tensor was made, innermost first; nothing where that was not watched."""
    if sys.version_info[:2] != (3, 11):
        trace = tracemalloc.get_object_traceback(tensor)
        return [Frame(frame.filename, frame.lineno) for frame in reversed(trace or ())]
    # Python 3.11 forgets the two words for the attributes that lie before the one for the collector.
    words = 4 if type(tensor).__flags__ & _ATTRIBUTES_BEFORE else 2
    import ctypes

    trace_of = ctypes.pythonapi._PyTraceMalloc_GetTraceback
    trace_of.restype, trace_of.argtypes = ctypes.py_object, (ctypes.c_uint, ctypes.c_size_t)
    return [Frame(file, line) for file, line in trace_of(0, id(tensor) - words * ctypes.sizeof(ctypes.c_void_p)) or ()]


def _sum_up(made: Iterable[tuple[int, list[Frame]]]) -> list[Site]:
    sums: dict[str, Site] = {}
    for size, frames in made:
        frame = told(frames)
        if frame is not None:
            line = f"{_short(frame.file)}:{frame.line}" + (f" in {frame.name}" if frame.name else "")
            before = sums.get(line, Site(line, 0, 0))
            sums[line] = Site(line, before.bytes + size, before.pieces + 1)
    return sorted(sums.values(), key=lambda site: (-site.bytes, site.line))


def told(frames: list[Frame]) -> Frame | None:
    """The frame of a stack, innermost first, that tells most: the innermost one of the program's own."""
    return next((frame for frame in frames if not _is_of_a_library(frame.file)), frames[0] if frames else None)


def _is_of_a_library(file: str) -> bool:
    return file.startswith(("<", *_STANDARD)) or any(part in file for part in _INSTALLED)


def _short(file: str) -> str:
    """A path as it would be typed here, where that is shorter."""
    try:
        return min(os.path.relpath(file), file, key=len)
    except (OSError, ValueError):
        return file
