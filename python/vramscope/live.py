"""How much memory tensors take right now, by the most exact means that there is."""

from __future__ import annotations

import sys
from typing import Dict


def bytes_by_device() -> Dict[str, int]:
    """Bytes that live tensors take, for each device: ``{"cuda:0": 1048576}``.

    On CUDA these are the bytes of the caching allocator's blocks that are in use, which it counts itself. Where there is no
    CUDA device in use, they are the bytes of the storages that :func:`vramscope.holders` finds on the CPU, under ``"cpu"``.
    Empty where the program has not imported torch.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
        devices = range(torch.cuda.device_count())
        return {f"cuda:{device}": torch.cuda.memory_allocated(device) for device in devices}
    from vramscope import holders

    return {"cpu": holders().total_bytes}


def counts_peaks() -> bool:
    """Whether the peak of a stretch of code can be told: the CUDA allocator keeps it, nobody does on the CPU."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available()


class Peaks:
    """The peaks of CUDA devices over a stretch of code, which begins where this is made."""

    def __init__(self) -> None:
        import torch

        self._cuda = torch.cuda
        # Nothing can be held on a device that nothing has touched yet.
        self.before = bytes_by_device() if torch.cuda.is_initialized() else {}
        for device in range(len(self.before)):
            torch.cuda.reset_peak_memory_stats(device)

    def above_before(self) -> Dict[str, int]:
        """Bytes at the peak of each device, above what was held on it before. Empty while CUDA is not in use."""
        if not self._cuda.is_initialized():
            return {}
        names = (f"cuda:{device}" for device in range(self._cuda.device_count()))
        return {name: self._cuda.max_memory_allocated(device) - self.before.get(name, 0) for device, name in enumerate(names)}
