"""Whatever happens to the program happens to it as without ``vramscope run``, and what could be saved is there."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

pytest.register_assert_rewrite("recorded")

from recorded import Programs, died_of, wait_for

#: Holds 512 KiB more each step, and says when it has done a few.
LOOP = """
    import os, sys, time
    import torch
    optimizer, kept = torch.optim.SGD(), []
    for step in range(int(sys.argv[1])):
        kept.append(torch.Tensor(1 << 19))
        optimizer.step()
        time.sleep(0.005)
        if step == 45:
            print("far enough", flush=True)
"""


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path)


def snapshots(programs):
    return [name for name in programs.files() if name.endswith(".pickle")]


def last_event(programs):
    return programs.events()[-1]


def test_kill_9_leaves_what_was_written(programs):
    process = programs.start(programs.write(LOOP), "100000")
    wait_for(process, b"far enough")
    time.sleep(1.5)
    process.kill()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (died_of(signal.SIGKILL), b"")
    assert snapshots(programs)
    rows = programs.rows()
    assert len(rows) > 50 and all(row["source"] for row in rows)


def test_sigterm_saves_and_then_kills(programs):
    process = programs.start(programs.write(LOOP), "100000", options=("--steps", "100000"))
    wait_for(process, b"far enough")
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (died_of(signal.SIGTERM), b"")
    assert "window1.pickle" in snapshots(programs)
    assert (last_event(programs)["event"], last_event(programs)["reason"]) == ("ended", "SIGTERM")


def test_a_handler_of_the_program_has_the_say(programs):
    got = programs.same(
        programs.write("""
        import os, signal, sys, time
        import torch
        torch.Tensor(512)
        torch.optim.SGD().step()
        for number in (signal.SIGTERM, signal.SIGUSR2, signal.SIGINT):
            print(signal.getsignal(number))
        def handler(number, frame):
            print("handled", number)
            if callable(before):
                before(number, frame)
        before = signal.signal(signal.SIGTERM, handler)
        print(before)
        os.kill(os.getpid(), signal.SIGTERM)
        print("alive", signal.getsignal(signal.SIGTERM) is handler)
        signal.signal(signal.SIGTERM, before)
        print(signal.getsignal(signal.SIGTERM))
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        os.kill(os.getpid(), signal.SIGUSR2)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(9)
        """)
    )
    assert got.status == died_of(signal.SIGTERM)


def test_a_handler_that_was_there_before_stays(programs):
    programs.same(
        programs.write("""
        import os, signal
        signal.signal(signal.SIGTERM, lambda *_: print("mine"))
        signal.signal(signal.SIGUSR2, lambda *_: print("mine too"))
        import torch
        torch.optim.SGD().step()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGUSR2)
        """)
    )


def test_an_error_is_saved_with_what_its_frames_hold(programs):
    programs.write("""
        import torch
        def train():
            kept = []
            for _ in range(10):
                kept.append(torch.Tensor(1 << 20))
                torch.optim.SGD().step()
            raise ValueError("wrong")
        train()
    """)
    assert programs.same("train.py").status == 1
    assert last_event(programs)["error"] == "ValueError"
    assert "window1.pickle" in snapshots(programs)
    inspected = programs.python("-m", "vramscope", "inspect", "--format", "json", str(programs.recording / "window1.pickle"))
    assert b"10485760" in inspected.out


def test_out_of_memory_is_saved_while_it_happens(programs):
    programs.write("""
        import torch
        torch.allocator.capacity = 64 << 20
        def train():
            kept = []
            while True:
                kept.append(torch.Tensor(1 << 20))
        try:
            train()
        except torch.OutOfMemoryError:
            print("caught")
        for _ in range(5):
            try:
                torch.Tensor(1 << 40)
            except torch.OutOfMemoryError:
                pass
    """)
    programs.same("train.py")
    assert [name for name in snapshots(programs) if name.startswith("oom")] == ["oom1.pickle"]
    assert [event["asked_bytes"] for event in programs.events() if event["event"] == "out-of-memory"] == [1 << 20]


def test_os_exit_saves(programs):
    programs.write("import os, torch\nkept = torch.Tensor(512)\ntorch.optim.SGD().step()\nos._exit(9)")
    assert programs.same("train.py").status == 9
    assert snapshots(programs) == ["window1.pickle"]
    assert last_event(programs)["reason"] == "os._exit"


@pytest.mark.parametrize("out", ["file", "file/deeper"])
def test_a_directory_that_cannot_be_made(programs, out):
    programs.write("", "file")
    programs.write(LOOP)
    programs.same("train.py", "60", options=("--out", out))
    got = programs.recorded("train.py", "60", options=("--out", out))
    assert got.status == 0
    assert len(got.err.splitlines()) == 1 and "the program goes on" in got.err


def test_a_read_only_directory(programs):
    if os.geteuid() == 0:
        # Root may write anywhere: take a file system that nobody can write to.
        out = "/proc/1"
    else:
        out = str(programs.directory / "closed")
        os.mkdir(out, 0o500)
    programs.write(LOOP)
    programs.same("train.py", "60", options=("--out", out))


@pytest.mark.parametrize("limit", [100, 3000, 9000])
def test_a_full_disk(programs, limit):
    programs.write(LOOP)
    want = programs.plain("train.py", "80")
    programs.preexec = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    got = programs.recorded("train.py", "80")
    assert (got.status, got.out) == (want.status, want.out)
    assert got.err.count("the program goes on") == 1 and "Traceback" not in got.err
    assert not [name for name in programs.files() if name.startswith(".")], "half a file was left"
    assert max(os.path.getsize(programs.recording / name) for name in programs.files()) <= limit


def test_a_directory_that_vanishes(programs):
    programs.write(LOOP.replace('print("far enough", flush=True)', '__import__("shutil").rmtree(".vramscope")'))
    got = programs.recorded("train.py", "80")
    assert (got.status, got.out) == (0, b"")
    assert got.err.count("the program goes on") == 1


def test_forked_children_are_not_recorded(programs):
    programs.write("""
        import os, signal, sys, threading, time
        import torch
        torch.Tensor(512)
        optimizer = torch.optim.SGD()
        optimizer.step()
        print(threading.active_count() >= 1, flush=True)
        for end in ("os._exit(3)", "sys.exit(4)", "raise ValueError('child')", "os.kill(os.getpid(), signal.SIGTERM)"):
            pid = os.fork()
            if pid == 0:
                for _ in range(100):
                    optimizer.step()
                assert threading.active_count() == 1
                assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
                exec(end)
            print(os.waitpid(pid, 0)[1], flush=True)
        optimizer.step()
    """)
    programs.same("train.py")
    assert last_event(programs)["steps"] == 2
    assert sum(event["event"] == "ended" for event in programs.events()) == 1


def test_a_fork_is_not_warned_of(programs):
    programs.write("""
        import os, time
        import torch
        torch.Tensor(512)
        time.sleep(0.3)
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
    """)
    programs.same("train.py", flags=("-W", "error"))


def test_threads_and_subprocesses(programs):
    programs.write("""
        import subprocess, sys, threading
        import torch
        optimizer = torch.optim.SGD()
        def work():
            for _ in range(200):
                torch.Tensor(512)
                optimizer.step()
        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        code = "import os, torch; torch.Tensor(512); torch.optim.SGD().step(); print([n for n in os.environ if 'VRAM' in n])"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True))
    """)
    programs.same("train.py")
    assert 1500 <= last_event(programs)["steps"] <= 1600


def test_an_error_of_the_recorder_ends_only_the_recording(programs):
    programs.write("""
        import torch
        torch.Tensor(512)
        optimizer = torch.optim.SGD()
        torch._C._cuda_memoryStats = None
        import vramscope.recording
        vramscope.recording.current.cuda.stats = lambda device: {}
        for _ in range(100):
            optimizer.step()
        print("done")
    """)
    got = programs.recorded("train.py")
    assert (got.status, got.out) == (0, b"done\n")
    assert got.err.startswith("vramscope: the recording has ended early (KeyError: 'allocated_bytes'); the program goes on\n")
    assert programs.events()[-1]["event"] == "failed"


def test_a_daemon_that_closes_everything(programs):
    programs.write("""
        import os
        import torch
        torch.Tensor(512)
        optimizer = torch.optim.SGD()
        optimizer.step()
        os.closerange(0, 256)
        files = [os.open(f"file{n}", os.O_RDWR | os.O_CREAT) for n in range(20)]
        for _ in range(2000):
            torch.Tensor(512)
            optimizer.step()
        for file in files:
            os.write(file, b"mine")
    """)
    programs.same("train.py")
    assert {(programs.directory / f"file{n}").read_bytes() for n in range(3, 20)} == {b"mine"}


def test_torchrun_like_ranks_share_a_directory(programs):
    programs.write(LOOP)
    ranks = []
    for rank in range(2):
        env = {**programs.env, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
        command = [sys.executable, "-m", "vramscope", "run", "train.py", "70"]
        ranks.append(subprocess.Popen(command, cwd=programs.directory, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    errors = [process.communicate(timeout=60)[1].decode() for process in ranks]
    assert [process.returncode for process in ranks] == [0, 0]
    assert {"rank0", "rank1", "environment.json"} <= set(programs.files())
    for part in ("rank0", "rank1"):
        assert {"statistics.csv", "events.jsonl", "window1.pickle"} <= set(programs.files(part))
    assert "recorded in" in errors[0] and errors[1] == ""


def test_a_launchers_children_are_recorded(programs):
    programs.write(LOOP)
    programs.write(
        """
        import os, subprocess, sys
        import torch
        def rank(n):
            return subprocess.Popen([sys.executable, "train.py", "70"], env={**os.environ, "RANK": str(n), "WORLD_SIZE": "2"})
        ranks = [rank(n) for n in range(2)]
        sys.exit(sum(rank.wait() for rank in ranks))
    """,
        "launch.py",
    )
    got = programs.recorded("launch.py", options=("--children",))
    assert got.status == 0
    assert "window1.pickle" in programs.files("rank0") and "window1.pickle" in programs.files("rank1")
    assert got.err.count("recorded in") == 1


def test_sigterm_ends_a_program_that_is_stuck_in_c(programs):
    programs.write("""
        import ctypes, torch
        kept = torch.Tensor(512)
        torch.optim.SGD().step()
        print("stuck", flush=True)
        mutex = ctypes.create_string_buffer(64)
        lock = ctypes.CDLL(None).pthread_mutex_lock
        lock(mutex), lock(mutex)
    """)
    process = programs.start("train.py")
    wait_for(process, b"stuck")
    time.sleep(0.3)
    process.terminate()
    process.communicate(timeout=10)
    assert process.returncode == died_of(signal.SIGTERM)
    assert last_event(programs)["reason"].startswith("SIGTERM")
    assert programs.rows()
