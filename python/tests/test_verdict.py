"""What is said at the end of a recorded program that uses no GPU, and what ``vramscope.report`` answers."""

from __future__ import annotations

import os

import pytest
from recorded import Programs

pytest.importorskip("torch")

LEAK = """
import time, torch
model, kept = torch.nn.Linear(256, 256), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    time.sleep(0.02)
    loss = model(torch.randn(32, 256)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append(model(torch.randn(32, 256)).sum())
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    programs = Programs(tmp_path_factory.mktemp("leak"), fake=False)
    programs.write(LEAK)
    programs.ended = programs.recorded("train.py")
    return programs


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path)


def test_a_leak_on_the_cpu_is_told_at_the_end(recorded):
    err = recorded.ended.err
    assert err.startswith("\nGROWING  memory grows by ") and "\n1  growing  __main__.kept[*]" in err
    where = os.path.join(".vramscope", recorded.recording.name)
    assert err.endswith(f"\n\nvramscope: recorded in {where}; more: vramscope analyze {where} --verbose\n")
    assert (recorded.recording / "report.txt").read_text().strip() in err


def test_a_report_on_what_is_on_the_disk(recorded):
    program = "import sys, vramscope; print(vramscope.report(sys.argv[1]), end='')"
    answers = {recorded.python("-c", program, where).out for where in (".vramscope/latest", ".vramscope")}
    # The path that was given is part of the answer.
    assert {answer.split(b"\n\nread", 1)[0] for answer in answers} == {
        (recorded.recording / "report.txt").read_bytes().split(b"\n\nread", 1)[0]
    }
    assert sorted(os.listdir(recorded.directory / ".vramscope")) == sorted(["latest", recorded.recording.name])
    assert not [name for name in recorded.files() if name.startswith(".")]


def test_what_cannot_be_analysed_raises(programs):
    programs.write("""
        import vramscope
        for where in ("nothing-here", "empty", "train.py"):
            try:
                vramscope.report(where)
            except RuntimeError as error:
                print(error)
    """)
    (programs.directory / "empty").mkdir()
    got = programs.plain("train.py")
    assert got.out.decode().splitlines() == [
        "`nothing-here` does not exist",
        "`empty` has nothing to analyse yet",
        "`train.py` could not be analysed",
    ]
    assert got.err.startswith("error: ") and got.err.count("error: ") == 1


def test_a_report_on_a_snapshot(programs):
    programs.write("""
        import torch, vramscope
        torch.cuda.memory._record_memory_history()
        kept = [torch.Tensor(512) for _ in range(3)]
        vramscope.snapshot("mine.pickle")
        print(vramscope.report("mine.pickle").splitlines()[2])
    """)
    got = programs.plain("train.py")
    assert got.out.startswith(b"read    1 snapshot") and got.out.endswith(b": mine.pickle\n"), got.err
    assert sorted(os.listdir(programs.directory)) == ["mine.pickle", "train.py"]


def test_a_report_in_the_middle_has_what_is_held_now(programs):
    programs.env["PYTHONPATH"] = programs.env["PYTHONPATH"].split(os.pathsep)[-1]
    programs.write("""
        import torch, vramscope
        vramscope.start(quiet=True)
        vramscope.step()
        kept = torch.ones(1 << 18)
        text = vramscope.report()
        print("__main__.kept" in text, vramscope.is_recording())
    """)
    got = programs.plain("train.py")
    assert (got.err, got.out) == ("", b"True True\n")


def test_a_recording_that_the_report_cannot_be_put_into_is_read(recorded):
    report = recorded.recording / "report.txt"
    text = report.read_text()
    report.unlink()
    report.mkdir()
    try:
        got = recorded.python("-c", "import vramscope; print(vramscope.report('.vramscope/latest'))")
        assert got.out.startswith(b"GROWING") and got.status == 0
        assert not [name for name in recorded.files() if name.startswith(".")]
    finally:
        report.rmdir()
        report.write_text(text)
