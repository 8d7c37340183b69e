"""``%%vramscope``: what a notebook cell took, what it left behind, and who holds that.

Load it with ``%load_ext vramscope``.
"""

from __future__ import annotations

from typing import Any, Dict

from vramscope import live
from vramscope.quantity import format_bytes

_SHOWN = 5


def register(shell: Any) -> None:
    """Adds the cell magic ``%%vramscope`` and the line magic ``%vramscope`` to IPython."""
    shell.register_magic_function(lambda line: show_holders(line), "line", "vramscope")
    shell.register_magic_function(lambda line, cell: run_cell(shell, line, cell), "cell", "vramscope")


def show_holders(_line: str) -> Any:
    """``%vramscope``: who holds the memory now."""
    from vramscope import holders

    return holders()


def run_cell(shell: Any, _line: str, cell: str) -> None:
    """``%%vramscope``: runs the cell and says what it changed."""
    peaks = _Peaks()
    before, paths = live.bytes_by_device(), _by_path()
    result = shell.run_cell(cell)
    after = live.bytes_by_device()
    for device, now in after.items():
        was = before.get(device, 0)
        peak = peaks.text(device, was)
        print(f"{device}: {format_bytes(now)} live, {_signed(now - was)} by this cell{peak}")
    rows = sorted(_by_path().items(), key=lambda item: paths.get(item[0], 0) - item[1])
    for (path, through), now in rows[:_SHOWN]:
        grown = now - paths.get((path, through), 0)
        if grown > 0:
            print(f"  {_signed(grown):>12}  {path}" + (f" through the {through}" if through else ""))
    # As without the magic: the traceback is shown already, and the rest of the notebook must not run on.
    result.raise_error()


class _Peaks:
    """The peak of each CUDA device while the cell runs."""

    def __init__(self) -> None:
        self._cuda = None
        if live.counts_peaks():
            import torch

            self._cuda = torch.cuda
            for device in range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0):
                torch.cuda.reset_peak_memory_stats(device)

    def text(self, device: str, was: int) -> str:
        if self._cuda is None or not device.startswith("cuda"):
            return ""
        peak = self._cuda.max_memory_allocated(int(device.split(":")[1]))
        return f", {_signed(peak - was)} at the peak"


def _by_path() -> Dict[Any, int]:
    from vramscope import holders

    by_path: Dict[Any, int] = {}
    for row in holders().to_dict()["holders"]:
        key = (row["path"], row["through"])
        by_path[key] = by_path.get(key, 0) + row["bytes"]
    return by_path


def _signed(count: int) -> str:
    return ("+" if count >= 0 else "") + format_bytes(count)
