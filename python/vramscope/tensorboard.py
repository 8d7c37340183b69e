"""The figures of a recording as scalars of TensorBoard, written by torch's ``SummaryWriter``."""

from __future__ import annotations

import csv
import os
from typing import Any

from vramscope.directory import STATISTICS


def log(writer: Any, recording: str | None = None, prefix: str = "vramscope") -> int:
    """Write the figures of each step as ``<prefix>/cuda<N>/<column>``, in bytes where the column says so.

    Args:
        writer: A ``torch.utils.tensorboard.SummaryWriter``, or a directory to make one for.
        recording: Directory with a ``statistics.csv``; without it, the recording of this process.
        prefix: What the names of the scalars begin with.

    Returns:
        How many scalars were written.

    Raises:
        RuntimeError: where nothing is recorded.
        ImportError: where a directory is given and tensorboard is not installed.
    """
    from vramscope.api import _recorder

    recorder = _recorder()
    if recording is None:
        if recorder is None or recorder.directory is None:
            raise RuntimeError("nothing is recorded in this process; begin with vramscope.start()")
        with recorder.entered() as may:
            if may:
                recorder._flush(0.0)
        recording = recorder.directory.path
    own = isinstance(writer, (str, os.PathLike))
    if own:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(log_dir=os.fspath(writer))
    written = 0
    with open(os.path.join(recording, STATISTICS), newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row["step"]:
                continue
            place = f"cuda{row['device']}" if row["device"] else "process"
            for name, text in row.items():
                if text and name not in ("step", "time_us", "device", "phase", "source"):
                    writer.add_scalar(f"{prefix}/{place}/{name}", int(text), int(row["step"]), int(row["time_us"]) / 1e6)
                    written += 1
    if own:
        writer.close()
    return written
