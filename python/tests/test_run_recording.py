"""What is recorded of a program with a device, what is said of it, and the functions of the package."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

pytest.register_assert_rewrite("recorded")

from recorded import Programs, wait_for

MIB = 1 << 20


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path)


def names(programs, ending):
    return [name for name in programs.files() if name.endswith(ending)]


def windows(programs):
    return [(event["window"], event["reason"]) for event in programs.events() if event["event"] == "window-opened"]


def test_the_files_of_a_recording(programs):
    programs.env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    programs.env["SECRET_TOKEN"] = "hidden"
    programs.write("""
        import time, torch
        optimizer, kept = torch.optim.SGD(), torch.Tensor(1 << 20)
        for _ in range(100):
            torch.Tensor(1 << 20)
            optimizer.step()
            time.sleep(0.004)
    """)
    got = programs.recorded("train.py", "--lr", "1")
    assert got.status == 0
    assert names(programs, ".pickle") == ["window1.pickle"]
    environment = json.loads((programs.recording / "environment.json").read_text())
    assert environment["torch"] == "2.11.0+fake"
    assert environment["gpus"] == [{"name": "Fake 1", "total_bytes": 1 << 40}]
    assert environment["settings"] == {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    assert environment["command"].endswith("train.py --lr 1")
    assert "hidden" not in "".join((programs.recording / name).read_text(errors="replace") for name in programs.files())
    rows = [row for row in programs.rows() if row["source"] == "optimizer"]
    assert [int(row["step"]) for row in rows] == sorted({int(row["step"]) for row in rows}) and len(rows) > 60
    assert {row["device"] for row in rows} == {"0"} and {row["allocated_bytes"] for row in rows} == {str(MIB)}
    assert {row["peak_allocated_bytes"] for row in rows} <= {str(MIB), str(2 * MIB)}
    closed = next(event for event in programs.events() if event["event"] == "window-closed")
    assert (closed["reason"], closed["steps"]) == ("steps", pytest.approx(60, abs=3))
    # The figures go on after the window: idle is not blind.
    assert int(rows[-1]["step"]) >= 95


def test_a_leak_that_begins_late_opens_a_window_and_is_convicted(programs):
    programs.write("""
        import time, torch
        optimizer, kept, weights = torch.optim.SGD(), [], torch.Tensor(1 << 20)
        def train(step):
            torch.Tensor(4 << 20)
            if step > 150:
                kept.append(torch.Tensor(1 << 20))  # here
            optimizer.step()
            time.sleep(0.004)
        for step in range(500):
            train(step)
    """)
    got = programs.recorded("train.py")
    assert windows(programs)[:2] == [(1, "first"), (2, "growth")]
    assert "train.py:7" in got.err and ("LEAK" in got.err or "GROWING" in got.err)
    assert (programs.recording / "report.txt").read_text().strip() in got.err


def test_a_leak_in_locals_is_seen_though_they_are_gone_at_the_end(programs):
    programs.write("""
        import time, torch
        def main():
            optimizer, kept = torch.optim.SGD(), []
            for step in range(50):
                kept.append(torch.Tensor(1 << 20))
                optimizer.step()
                time.sleep(0.004)
        main()
    """)
    got = programs.recorded("train.py")
    assert "train.py:6" in got.err and ("LEAK" in got.err or "GROWING" in got.err)


def test_a_sawtooth_opens_a_window(programs):
    programs.write("""
        import time, torch
        optimizer, kept = torch.optim.SGD(), []
        for step in range(400):
            if step > 100:
                kept.append(torch.Tensor(2 << 20))
            if step % 20 == 0:
                kept.clear()
            optimizer.step()
            time.sleep(0.004)
    """)
    programs.recorded("train.py")
    assert (2, "sawtooth") in windows(programs)


def test_a_clean_program_is_called_clean_and_left_alone(programs):
    programs.write("""
        import time, torch
        optimizer, kept = torch.optim.SGD(), torch.Tensor(8 << 20)
        for step in range(400):
            a, b = torch.Tensor(1 << 20), torch.Tensor(1 << 21)
            del a, b
            optimizer.step()
            time.sleep(0.004)
    """)
    got = programs.recorded("train.py")
    assert windows(programs) == [(1, "first")]
    assert "LEAK" not in got.err and "GROWING" not in got.err


def test_usr2_opens_a_window(programs):
    programs.write("""
        import time, torch
        optimizer = torch.optim.SGD()
        for step in range(100000):
            torch.Tensor(1 << 20)
            optimizer.step()
            time.sleep(0.004)
            if step == 5:
                print("ready", flush=True)
    """)
    process = programs.start("train.py", options=("--first-window", "no"))
    wait_for(process, b"ready")
    os.kill(process.pid, signal.SIGUSR2)
    deadline = time.monotonic() + 30
    while "window1.pickle" not in programs.files() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=60)
    assert windows(programs) == [(1, "signal")]
    assert "window1.pickle" in programs.files()


def test_first_window_no_records_no_history(programs):
    programs.write("import torch\nfor _ in range(200):\n    torch.Tensor(512)\n    torch.optim.SGD().step()\nprint(torch.allocator.trace)")
    assert programs.recorded("train.py", options=("--first-window", "no")).out == b"None\n"
    assert names(programs, ".pickle") == []


def test_always(programs):
    programs.write(
        "import time, torch\nfor _ in range(200):\n    torch.Tensor(512)\n    torch.optim.SGD().step()\nprint(len(torch.allocator.trace))"
    )
    assert programs.recorded("train.py", options=("--always",)).out == b"1000\n"
    assert windows(programs) == [(1, "always")]
    assert "window1.pickle" in programs.files()


def test_the_disk_has_a_limit(programs):
    programs.write("""
        import time, torch
        optimizer, kept = torch.optim.SGD(), [torch.Tensor(512) for _ in range(300)]
        for step in range(400):
            [torch.Tensor(512) for _ in range(20)]
            optimizer.step()
            time.sleep(0.01)
    """)
    programs.recorded("train.py", options=("--max-disk", "600k", "--steps", "20", "--every", "1"))
    dropped = [name for event in programs.events() if event["event"] == "dropped" for name in event["files"]]
    assert dropped and not set(dropped) & set(programs.files())
    assert sum(os.path.getsize(programs.recording / name) for name in names(programs, ".pickle")) <= 600 << 10
    assert "window1.pickle" in programs.files()


def test_a_program_that_records_history_itself_keeps_the_say(programs):
    programs.write("""
        import torch
        optimizer = torch.optim.SGD()
        torch.Tensor(512)
        torch.cuda.memory._record_memory_history(max_entries=5000)
        for step in range(200):
            torch.Tensor(512)
            optimizer.step()
        print(len(torch.allocator.trace), torch.allocator.limit)
        torch.cuda.memory._dump_snapshot("own.pickle")
        torch.cuda.memory._record_memory_history(None)
        print(torch.allocator.trace)
    """)
    got = programs.recorded("train.py")
    assert got.out == b"1005 5000\nNone\n"
    assert "window1.pickle" in programs.files()


@pytest.mark.parametrize(
    ("body", "source", "steps"),
    [
        ("for _ in range(30):\n    optimizer.step()", "optimizer", 30),
        ("other = torch.optim.SGD()\nfor _ in range(30):\n    optimizer.step(); other.step(); other.step()", "optimizer", 30),
        ("for _ in loader(range(30)):\n    torch.autograd.backward(); optimizer.step()", "optimizer", 30),
        ("for _ in loader(range(30)):\n    torch.autograd.backward()", "loader", 30),
        ("for _ in loader(range(10)):\n    for _ in loader(range(5)):\n        pass", "loader", 10),
        ("data = range(10)\nkept = []\nfor _ in range(3):\n    kept.append(loader(data))\n    list(kept[-1])", "loader", 30),
        ("for _ in range(30):\n    torch.autograd.backward()", "backward", 30),
        ("for _ in loader(range(30)):\n    optimizer.step(); vramscope.step()", "explicit", 30),
        ("for _ in range(30):\n    optimizer.step()\nfor _ in loader(range(90)):\n    pass", "optimizer", 30),
    ],
)
def test_what_a_step_is(programs, body, source, steps):
    head = "import torch, vramscope\nfrom torch.utils.data.dataloader import _BaseDataLoaderIter as loader\n"
    head += "optimizer = torch.optim.SGD()\nkept = torch.Tensor(512)\n"
    (programs.directory / "train.py").write_text(head + body + "\n")
    programs.same("train.py")
    assert (programs.events()[-1]["source"], programs.events()[-1]["steps"]) == (source, steps)


def test_a_program_without_steps_is_read_by_the_clock(programs):
    programs.write("import time, torch\nfor _ in range(60):\n    torch.Tensor(512)\n    time.sleep(0.02)")
    programs.recorded("train.py")
    rows = programs.rows()
    assert len(rows) >= 4
    assert {(row["step"], row["source"], row["device"]) for row in rows} == {("", "clock", "0")}
    assert "window1.pickle" in programs.files()


def test_without_a_device_the_process_is_read(programs):
    programs.write("import torch\nfor _ in range(50):\n    torch.optim.SGD().step()")
    got = programs.recorded("train.py")
    assert got.err.startswith("\nCANNOT TELL  no memory of a GPU was in use in ")
    assert "vramscope: recorded in .vramscope/" in got.err.splitlines()[-1]
    rows = programs.rows()
    assert all(row["device"] == row["allocated_bytes"] == "" for row in rows)
    # The figures of the last step may not have been read, but that it was is known.
    assert rows[0]["step"] == "1" and rows[-1]["step"] == "50"
    assert all(int(row["rss_bytes"]) > MIB for row in rows[:-1])


def test_without_a_device_signals_are_heard_though_the_clock_began_the_recording(programs):
    programs.write("""
        import os, signal, sys, time, torch
        time.sleep(2.6)
        os.kill(os.getpid(), signal.SIGUSR2)
        time.sleep(1.2)
        print("still here")
    """)
    got = programs.recorded("train.py")
    assert (got.status, got.out) == (0, b"still here\n"), got.err
    assert set(programs.events()[0]["signals"]) == {"SIGTERM", "SIGUSR2"}


def test_the_functions_without_run(programs):
    programs.write("""
        import os, torch, vramscope
        vramscope.step(); vramscope.watch(vramscope, "never here")
        assert vramscope.stop() is None and vramscope.snapshot() is None
        for wrong in ({"stacks": "cpp"}, {"steps": 0}, {"max_entries": -4}):
            try:
                vramscope.start(**wrong)
            except ValueError as error:
                assert next(iter(wrong)) in str(error)
            else:
                assert False, wrong
        vramscope.start(out="elsewhere", steps=10, quiet=True)
        optimizer, kept = torch.optim.SGD(), []
        for step in range(20):
            with vramscope.phase("train, mostly"):
                kept.append(torch.Tensor(1 << 20))
                optimizer.step()
        print(os.path.basename(vramscope.snapshot()), vramscope.snapshot("mine.pickle"))
        print("train.py:16" in vramscope.report())
        where = vramscope.stop()
        print(sorted(name for name in os.listdir(where) if name.endswith(".pickle")))
        print(vramscope.report(where) == vramscope.report(where), torch.allocator.trace, vramscope.stop())
        optimizer.step()
        vramscope.start(out="again")
        optimizer.step()
    """)
    got = programs.plain("train.py")
    assert (got.status, got.err) == (0, "")
    out = got.out.decode().splitlines()
    assert out[:2] == ["snapshot1.pickle mine.pickle", "True"]
    assert out[3] == "True None None"
    assert "snapshot1.pickle" in out[2] and "window" in out[2]
    recording = programs.directory / "elsewhere" / "latest"
    phases = {line.split(",")[-2] for line in (recording / "statistics.csv").read_text().splitlines()[1:]}
    assert "train mostly" in phases
    assert (programs.directory / "again" / "latest" / "events.jsonl").exists()


def test_the_functions_without_torch(programs):
    programs.write("""
        import vramscope
        vramscope.start()
        vramscope.step()
        with vramscope.phase("nothing"):
            print(vramscope.snapshot(), vramscope.snapshot("x"), vramscope.stop())
        try:
            vramscope.report()
        except RuntimeError as error:
            print(error)
    """)
    got = programs.plain("train.py")
    assert got.out == b"None None None\nnothing is recorded in this process; begin with vramscope.start()\n"
    assert os.listdir(programs.directory) == ["train.py"]


def test_hooks_keep_nothing_of_the_program(programs):
    programs.write("""
        import gc, weakref
        import torch
        from torch.utils.data.dataloader import _BaseDataLoaderIter as loader
        def train():
            optimizer, batches = torch.optim.SGD(), loader([1, 2, 3])
            kept = torch.Tensor(512)
            for _ in batches:
                optimizer.step()
            return [weakref.ref(thing) for thing in (optimizer, batches, kept)]
        gc.disable()
        print([ref() for ref in train()])
    """)
    assert programs.same("train.py").out == b"[None, None, None]\n"


def test_scalars(programs):
    from vramscope import tensorboard

    class Writer:
        def __init__(self):
            self.scalars = []

        def add_scalar(self, name, value, step, walltime):
            self.scalars.append((name, value, step))

    programs.write("import torch\nkept = torch.Tensor(512)\nfor _ in range(3):\n    torch.optim.SGD().step()")
    programs.recorded("train.py")
    writer = Writer()
    assert tensorboard.log(writer, str(programs.recording)) == len(writer.scalars) > 0
    assert ("vramscope/cuda0/allocated_bytes", 512, 1) in writer.scalars
