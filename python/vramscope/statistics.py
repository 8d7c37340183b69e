"""The figures at the end of a step: what they are, where they are read, how they are written."""

from __future__ import annotations

import os
from time import time_ns
from typing import Any, Callable, Optional

#: Every column of ``statistics.csv``, with its unit. A field that is not known is empty.
COLUMNS = (
    "step",
    "time_us",
    "device",
    "allocated_bytes",
    "reserved_bytes",
    "active_bytes",
    "requested_bytes",
    "inactive_split_bytes",
    "peak_allocated_bytes",
    "peak_reserved_bytes",
    "segments",
    "alloc_retries",
    "ooms",
    "rss_bytes",
    "phase",
    "source",
)

#: Allocated, reserved, active, requested and stranded bytes; the peaks of the first two; segments, retries, failures.
Figures = tuple[int, int, int, int, int, int, int, int, int, int]

NO_FIGURES = ("",) * 10
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class CudaFigures:
    """Reads the counters of torch's caching allocator. Nothing is allocated on the device, and nothing waited for."""

    def __init__(self, torch: Any) -> None:
        native = getattr(torch._C, "_cuda_memoryStats", None)
        self.stats: Callable[[int], Any] = native or torch.cuda.memory_stats_as_nested_dict
        self.count = torch.cuda.device_count()
        self.devices = self.in_use()

    def in_use(self) -> list[int]:
        """The devices on which memory was ever obtained; the first one while there are none."""
        used = [device for device in range(self.count) if self.read(device)[6] > 0]
        return used or [0][: self.count]

    def read(self, device: int) -> Figures:
        """The counters of a device, in the order of :data:`Figures`."""
        stats = self.stats(device)
        allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
        requested = stats.get("requested_bytes")
        return (
            allocated["current"],
            reserved["current"],
            stats["active_bytes"]["all"]["current"],
            requested["all"]["current"] if requested else 0,
            stats["inactive_split_bytes"]["all"]["current"],
            allocated["peak"],
            reserved["peak"],
            stats["segment"]["all"]["current"],
            stats["num_alloc_retries"],
            stats["num_ooms"],
        )

    def events(self) -> int:
        """About how many entries of history the devices have made since the program's start."""
        total = 0
        for device in self.devices:
            blocks = self.stats(device)["allocation"]["all"]
            # Each free is two: asked for, and done.
            total += blocks["allocated"] + 2 * blocks["freed"]
        return total


def rss_bytes() -> int:
    """Bytes of this process that are in the machine's memory."""
    descriptor = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(descriptor, 128).split()[1]) * PAGE_BYTES
    finally:
        os.close(descriptor)


ROW = ",".join(["%s"] * len(COLUMNS)) + "\n"

#: A row before it is written: step, time in µs, device, figures, bytes in the machine's memory, phase, source.
Row = tuple[Optional[int], int, Optional[int], Optional[Figures], int, str, str]


def row_text(row: Row) -> str:
    """A row as a line of the file."""
    step, time_us, device, figures, rss, phase, source = row
    return ROW % (
        "" if step is None else step,
        time_us,
        "" if device is None else device,
        *(figures or NO_FIGURES),
        rss or "",
        phase,
        source,
    )


def now_us() -> int:
    """Microseconds since 1970: the clock of torch's history."""
    return time_ns() // 1000
