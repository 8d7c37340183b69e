"""How much memory tensors take right now, by the most exact means that there is, and who holds it.

On CUDA the caching allocator counts the bytes of its blocks in use itself, at no cost. Nobody counts on the CPU: there the
heap is walked, which takes a tenth of a second and more, and tells who holds the memory as well.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple


class Key(NamedTuple):
    """What makes two rows of holders the same holder."""

    path: str
    #: ``"autograd graph"`` where the memory hangs on the graph of the object at the end of the path.
    through: str | None
    #: ``"activations"``, ``"user_held"``, …
    kind: str

    def __str__(self) -> str:
        return f"{self.path} through the {self.through}" if self.through else self.path


class Held(NamedTuple):
    """What one holder holds."""

    bytes: int
    blocks: int


class Reading:
    """The memory of tensors at one moment."""

    def __init__(self, with_holders: bool = False) -> None:
        """Reads.

        Args:
            with_holders: Whether :attr:`holders` is wanted where it costs extra.
        """
        #: Bytes that live tensors take, for each device: ``{"cuda:0": 1048576}``; ``"cpu"`` where no CUDA device is in use.
        #: Empty where nothing has imported torch.
        self.bytes: dict[str, int] = {}
        #: Who holds them; None where nobody looked.
        self.holders: dict[Key, Held] | None = None
        #: Why :attr:`holders` could not be had.
        self.no_holders = ""
        torch = imported_torch()
        if torch is None:
            return
        if torch.cuda.is_initialized():
            self.bytes = cuda_bytes(torch)
            if with_holders:
                try:
                    _, self.holders = _look()
                except RuntimeError as error:
                    self.no_holders = str(error)
        else:
            total, self.holders = _look()
            self.bytes = {"cpu": total}


def _look() -> tuple[int, dict[Key, Held]]:
    from vramscope import holding

    found = holding.find()
    held: dict[Key, Held] = {}
    for row in found.to_dict()["holders"]:
        key = Key(row["path"], row["through"], row["class"])
        before = held.get(key, Held(0, 0))
        held[key] = Held(before.bytes + row["bytes"], before.blocks + row["blocks"])
    return found.total_bytes, held


def imported_torch() -> Any:
    """The module torch, where something has imported it; None otherwise."""
    return sys.modules.get("torch")


def cuda_bytes(torch: Any) -> dict[str, int]:
    """Bytes of the blocks in use of each CUDA device, where CUDA is initialised."""
    torch.cuda.synchronize()
    return {f"cuda:{device}": torch.cuda.memory_allocated(device) for device in range(torch.cuda.device_count())}


class Peaks:
    """The peaks of CUDA devices over a stretch of code, which begins where this is made.

    The CUDA allocator keeps its peak; nobody does on the CPU. While nothing has touched CUDA nothing is held there, so that
    a stretch may also be the one that imports torch.
    """

    def __init__(self) -> None:
        torch = imported_torch()
        self.before: dict[str, int] = {}
        if torch is not None and torch.cuda.is_initialized():
            self.before = cuda_bytes(torch)
            for device in range(len(self.before)):
                torch.cuda.reset_peak_memory_stats(device)

    def above_before(self) -> dict[str, int] | None:
        """Bytes at the peak of each device, above what was held on it before. None where there is no device to tell of."""
        torch = imported_torch()
        if torch is None or not torch.cuda.is_initialized():
            return {} if torch is not None and _has_device(torch) else None
        names = (f"cuda:{device}" for device in range(torch.cuda.device_count()))
        return {name: max(0, torch.cuda.max_memory_allocated(device) - self.before.get(name, 0)) for device, name in enumerate(names)}


def _has_device(torch: Any) -> bool:
    """Whether there is a CUDA device. Its driver is not initialised, where that can be: a process must not fork after that."""
    with _variable("PYTORCH_NVML_BASED_CUDA_CHECK", "1"):
        return bool(torch.cuda.is_available())


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
