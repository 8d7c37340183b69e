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
    peaks = live.Peaks() if live.counts_peaks() else None
    before, paths = live.bytes_by_device(), _by_path()
    result = shell.run_cell(cell)
    after = live.bytes_by_device()
    above = peaks.above_before() if peaks is not None else {}
    for device, now in after.items():
        peak = f", {_signed(above[device])} at the peak" if device in above else ""
        print(f"{device}: {format_bytes(now)} live, {_signed(now - before.get(device, 0))} by this cell{peak}")
    rows = sorted(_by_path().items(), key=lambda item: paths.get(item[0], 0) - item[1])
    for (path, through), now in rows[:_SHOWN]:
        grown = now - paths.get((path, through), 0)
        if grown > 0:
            print(f"  {_signed(grown):>12}  {path}" + (f" through the {through}" if through else ""))
    # As without the magic: the traceback is shown already, and the rest of the notebook must not run on.
    result.raise_error()


def _by_path() -> Dict[Any, int]:
    from vramscope import holders

    by_path: Dict[Any, int] = {}
    for row in holders().to_dict()["holders"]:
        key = (row["path"], row["through"])
        by_path[key] = by_path.get(key, 0) + row["bytes"]
    return by_path


def _signed(count: int) -> str:
    return ("+" if count >= 0 else "") + format_bytes(count)
