"""The figures of a recording as scalars of TensorBoard, written by torch's ``SummaryWriter``."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from vramscope.directory import STATISTICS

#: Columns of the table that are no figures.
_NOT_FIGURES = ("step", "time_us", "device", "phase", "source")


class Scalar(NamedTuple):
    """One figure at the end of one step."""

    #: ``cuda0/allocated_bytes``; ``rank1/cuda0/…`` where there are several ranks.
    name: str
    value: int
    step: int
    #: Seconds since 1970.
    time_s: float


def log(writer: Any, recording: str | os.PathLike[str] | None = None, prefix: str = "vramscope") -> int:
    """Write the figures of each step as ``<prefix>/cuda<N>/<column>``, in bytes where the column says so.

    Args:
        writer: A ``torch.utils.tensorboard.SummaryWriter``, or a directory to make one for.
        recording: Directory of a recording; without it, the recording of this process.
        prefix: What the names of the scalars begin with.

    Returns:
        How many scalars were written.

    Raises:
        RuntimeError: where nothing is recorded, or the table is damaged.
        FileNotFoundError: where the directory has no ``statistics.csv``.
        ImportError: where a directory is given to write to and tensorboard is not installed.
    """
    parts = _parts(_here() if recording is None else os.fspath(recording))
    own = isinstance(writer, (str, os.PathLike))
    if own:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(log_dir=os.fspath(writer))
    written = 0
    try:
        for part, file in parts:
            for scalar in _scalars(file):
                writer.add_scalar("/".join(filter(None, (prefix, part, scalar.name))), scalar.value, scalar.step, scalar.time_s)
                written += 1
    finally:
        if own:
            writer.close()
    return written


def _here() -> str:
    from vramscope.api import _recorder

    recorder = _recorder()
    if recorder is None or recorder.directory is None:
        raise RuntimeError("nothing is recorded in this process; begin with vramscope.start()")
    recorder.write_out()
    return recorder.directory.path


def _parts(recording: str) -> list[tuple[str, str]]:
    """The tables of a recording: of its ranks and of processes that the program started, or the only one."""
    names = ["", *sorted(os.listdir(recording), key=_by_number)] if os.path.isdir(recording) else []
    tables = [(name, os.path.join(recording, name, STATISTICS)) for name in names]
    found = [(name, file) for name, file in tables if os.path.isfile(file)]
    if not found:
        raise FileNotFoundError(f"`{recording}` has no {STATISTICS}; give the directory of one recording, such as .vramscope/latest")
    return found


def _by_number(name: str) -> tuple[str, int]:
    """Lets rank10 come after rank9."""
    digits = re.search(r"[0-9]*$", name)
    number = digits.group() if digits else ""
    return name[: len(name) - len(number)], int(number or 0)


def _scalars(file: str) -> Iterator[Scalar]:
    with open(file, newline="", encoding="utf-8") as table:
        # A row whose last column is missing was cut off as it was written.
        rows: list[dict[str, str]] = []
        try:
            rows.extend(row for row in csv.DictReader(table) if row["step"] and row["source"])
        except (csv.Error, KeyError, UnicodeDecodeError) as error:
            raise RuntimeError(f"{file} is damaged: {error}; hint: `vramscope analyze` reads what is readable") from error
    for row in rows:
        # A better source that shows itself later counts from 1 again: what came before would be drawn over it.
        if row["source"] != rows[-1]["source"]:
            continue
        place = f"cuda{row['device']}" if row["device"] else "process"
        for name, text in row.items():
            if text and name not in _NOT_FIGURES:
                yield Scalar(f"{place}/{name}", int(text), int(row["step"]), int(row["time_us"]) / 1e6)
