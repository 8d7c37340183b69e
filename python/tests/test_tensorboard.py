"""The figures of a recording as scalars of TensorBoard and as a table."""

from __future__ import annotations

import csv

import pytest
from recorded import Programs
from vramscope import tensorboard
from vramscope.statistics import COLUMNS

TRAIN = """
import torch
kept = []
optimizer = torch.optim.SGD()
for step in range(6):
    kept.append(torch.Tensor(1 << 20))
    optimizer.step()
"""


class Writer:
    def __init__(self):
        self.scalars = []

    def add_scalar(self, name, value, step, walltime):
        self.scalars.append((name, value, step))


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path)


def test_scalars_are_read_back_by_tensorboard(programs):
    pytest.importorskip("tensorboard")
    pytest.importorskip("torch")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    programs.write(TRAIN)
    programs.recorded("train.py")
    rows = [row for row in programs.rows() if row["allocated_bytes"] and row["source"] == "optimizer"]
    written = tensorboard.log(programs.directory / "board", programs.recording)
    board = EventAccumulator(str(programs.directory / "board"))
    board.Reload()
    names = board.Tags()["scalars"]
    assert {"vramscope/cuda0/allocated_bytes", "vramscope/cuda0/peak_reserved_bytes", "vramscope/cuda0/ooms"} <= set(names)
    assert written == sum(len(board.Scalars(name)) for name in names) > 0
    scalars = board.Scalars("vramscope/cuda0/allocated_bytes")
    assert [(s.step, s.value) for s in scalars] == [(int(row["step"]), int(row["allocated_bytes"])) for row in rows]
    assert [s.wall_time for s in scalars] == pytest.approx([int(row["time_us"]) / 1e6 for row in rows])


def test_a_writer_of_the_program_is_left_open(programs):
    programs.write("""
        import torch, vramscope, vramscope.tensorboard
        vramscope.start(quiet=True)
        for _ in range(3):
            torch.Tensor(512); vramscope.step()
        class Writer(list):
            def add_scalar(self, *scalar):
                self.append(scalar[:1])
        writer = Writer()
        print(vramscope.tensorboard.log(writer, prefix="memory") == len(writer) > 0, min(writer), vramscope.is_recording())
    """)
    assert programs.plain("train.py").out == b"True ('memory/cuda0/active_bytes',) True\n"


def test_the_table_has_a_row_for_each_step_and_a_unit_for_each_column(programs):
    programs.write(TRAIN.replace("import torch", "import time, torch") + "    time.sleep(0.02)\n")
    programs.recorded("train.py")
    rows = [row for row in programs.rows() if row["source"] == "optimizer" and row["allocated_bytes"]]
    assert tuple(rows[0]) == COLUMNS
    assert [(int(row["step"]), int(row["allocated_bytes"])) for row in rows] == [(n, n << 20) for n in range(1, 7)]
    times = [int(row["time_us"]) for row in rows]
    assert times == sorted(times) and 1e15 < times[0] < times[-1]


def table(directory, *rows):
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "statistics.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def row(step, allocated, device=0, source="explicit"):
    return {"step": step, "time_us": 1_700_000_000_000_000 + step, "device": device, "allocated_bytes": allocated, "source": source}


def test_ranks_are_told_apart(tmp_path):
    for rank in (0, 2, 10):
        table(tmp_path / f"rank{rank}", row(1, 100 + rank, device=rank))
    writer = Writer()
    assert tensorboard.log(writer, tmp_path) == 3
    assert writer.scalars == [(f"vramscope/rank{rank}/cuda{rank}/allocated_bytes", 100 + rank, 1) for rank in (0, 2, 10)]


def test_steps_by_a_worse_source_are_left_out(tmp_path):
    table(tmp_path, row(1, 5, source="loader"), row(2, 6, source="loader"), row(1, 7), row(2, 8))
    writer = Writer()
    tensorboard.log(writer, tmp_path)
    assert [scalar[1:] for scalar in writer.scalars] == [(7, 1), (8, 2)]


def test_a_table_that_was_cut_off_is_read_to_its_last_whole_row(tmp_path):
    table(tmp_path, row(1, 5), row(2, 6))
    whole = (tmp_path / "statistics.csv").read_text()
    for length in range(len(whole)):
        (tmp_path / "statistics.csv").write_text(whole[:length])
        # The last column is no figure, so that a row without its end may count.
        assert tensorboard.log(Writer(), tmp_path) <= whole[: length + len("explicit\n")].count("\n")


def test_what_is_no_recording_is_said(tmp_path):
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(FileNotFoundError, match=r"has no statistics\.csv; give the directory of one recording, such as"):
            tensorboard.log(Writer(), place)
    with pytest.raises(RuntimeError, match="nothing is recorded in this process"):
        tensorboard.log(Writer())
