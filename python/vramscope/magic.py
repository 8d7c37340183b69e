"""``%%vramscope``: what a notebook cell took, what it left behind, and who holds that.

Load it with ``%load_ext vramscope``.
"""

from __future__ import annotations

from typing import Any

from vramscope import live
from vramscope.quantity import format_bytes

_SHOWN = 5


def register(shell: Any) -> None:
    """Adds the cell magic ``%%vramscope`` and the line magic ``%vramscope`` to IPython."""

    def of_cell(line: str, cell: str) -> None:
        __tracebackhide__ = True
        run_cell(shell, line, cell)

    shell.register_magic_function(show_holders, "line", "vramscope")
    shell.register_magic_function(of_cell, "cell", "vramscope")


def show_holders(line: str) -> None:
    """``%vramscope``: who holds the memory now."""
    _refuse_words("%vramscope", line)
    from vramscope import holding

    print(holding.find())


def run_cell(shell: Any, line: str, cell: str) -> None:
    """``%%vramscope``: runs the cell and says what it changed."""
    __tracebackhide__ = True
    _refuse_words("%%vramscope", line)
    peaks, before = live.Peaks(), live.Reading(with_holders=True)
    result = shell.run_cell(cell)
    above, after = peaks.above_before() or {}, live.Reading(with_holders=True)
    if not after.bytes:
        print("vramscope: nothing to measure, as nothing has imported torch")
    for device, now in after.bytes.items():
        peak = f", {_signed(above[device])} at the peak" if device in above else ""
        print(f"{device}: {format_bytes(now)} live, {_signed(now - before.bytes.get(device, 0))} by this cell{peak}")
    if after.no_holders:
        print(f"  who holds it could not be found: {after.no_holders}")
    rows = _growth(before, after)
    for more, key in rows[:_SHOWN]:
        print(f"  {_signed(more):>12}  {key}")
    if len(rows) > _SHOWN:
        rest = sum(more for more, _ in rows[_SHOWN:])
        print(f"  {_signed(rest):>12}  {len(rows) - _SHOWN} more (%vramscope shows all holders)")
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        # The rest of the notebook must not run on.
        raise _shown(error)


class CellFailed(Exception):
    """Stops the notebook after a cell that failed."""


def _growth(before: live.Reading, after: live.Reading) -> list[tuple[int, live.Key]]:
    """Who holds more than before, most first."""
    nothing = live.Held(0, 0)
    held = (before.holders or {}, after.holders or {})
    rows = [(now.bytes - held[0].get(key, nothing).bytes, key) for key, now in held[1].items()]
    return sorted(((more, key) for more, key in rows if more > 0), key=lambda row: (-row[0], row[1]))


def _shown(error: BaseException) -> BaseException:
    """What to raise after this error, so that IPython, which has shown it already, does not show it again."""
    if isinstance(error, (SyntaxError, SystemExit)) or not hasattr(error, "__dict__"):
        # These are not asked how they want to be shown.
        error = CellFailed(f"the cell ended with {type(error).__name__}")
    silent: Any = error

    def nothing() -> list[str]:
        # Once: `%tb` shall find it as it was.
        del silent._render_traceback_
        return []

    silent._render_traceback_ = nothing
    return error


def _refuse_words(magic: str, line: str) -> None:
    if line.strip():
        from IPython.core.error import UsageError

        raise UsageError(f"{magic} takes no words on its line: `{line.strip()}`")


def _signed(count: int) -> str:
    return ("+" if count >= 0 else "") + format_bytes(count)
