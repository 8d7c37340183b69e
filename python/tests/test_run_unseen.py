"""What a program could see of the recorder, if it looked for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.register_assert_rewrite("recorded")

from recorded import Programs


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path)


HEAD = "import gc, os, signal, sys, threading, time, torch\n"


@pytest.mark.parametrize(
    "body",
    [
        # Our thread takes no signals, is not counted, and has no descriptor of its own to show.
        "signal.pthread_sigmask(signal.SIG_BLOCK, [10]); os.kill(os.getpid(), 10); print(signal.sigwait([10]))",
        "torch.Tensor(9); print(threading.active_count(), len(threading.enumerate())); print(signal.set_wakeup_fd(-1))",
        "threading.stack_size(1 << 16); torch.Tensor(9); print(threading.stack_size())",
        "threading.settrace(lambda *_: print('traced')); torch.Tensor(9); time.sleep(0.3)",
        # What is put in the place of functions for a test is for the test.
        "import unittest.mock as u\nwith u.patch('time.monotonic', side_effect=[1]): torch.optim.SGD().step(); print(time.monotonic())",
        "from unittest import mock\nwith mock.patch('os.getpid', side_effect=OSError):\n    torch.optim.SGD().step()\nprint('stepped')",
    ],
)
def test_it_looks_as_without(programs, body):
    programs.write(HEAD + body)
    programs.same("train.py")


def test_whoever_asks_for_torch_before_the_import_finds_its_loader(programs):
    programs.write("""
        import importlib.util, pkgutil
        loader = importlib.util.find_spec("torch").loader
        print(loader.is_package("torch"), loader.get_filename("torch")[-17:], len(pkgutil.get_data("torch", "__init__.py")) > 9)
        import torch
        print(type(torch.__loader__).__name__)
    """)
    programs.same("train.py")


def test_a_child_that_is_told_to_end_at_once_ends(programs):
    programs.write("""
        import os, signal, time, torch
        ended = []
        for _ in range(150):
            child = os.fork()
            if child == 0:
                time.sleep(3)
                os._exit(0)
            os.kill(child, signal.SIGTERM)
            ended.append(os.waitpid(child, 0)[1])
        print(set(ended))
    """)
    got = programs.same("train.py")
    assert got.out == b"{15}\n"


@pytest.mark.parametrize("kind", ["BaseException", "Exception"])
@pytest.mark.parametrize("loop", ["gc.collect()", "torch.optim.SGD().step()", "(child := os.fork()) or os._exit(0); os.waitpid(child, 0)"])
def test_what_a_handler_raises_is_raised_in_the_program(programs, kind, loop):
    programs.write(f"""
        import gc, os, signal, time, torch
        class Stop({kind}): pass
        def stop(number, frame):
            raise Stop("the time is up")
        signal.signal(signal.SIGALRM, stop)
        torch.Tensor(9)
        came = 0
        for _ in range(20):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.005)
                end = time.time() + 5
                while time.time() < end:
                    {loop}
            except Stop as error:
                came += str(error) == "the time is up"
        print(came)
    """)
    got = programs.same("train.py")
    assert got.out == b"20\n"


def test_nothing_is_written_into_what_takes_the_place_of_the_standard_error(programs):
    programs.write("""
        import os, torch
        if os.environ.get("CLOSE"):
            os.close(2)
        file = os.open("data.txt", os.O_WRONLY | os.O_CREAT)
        os.write(file, b"mine")
        torch.Tensor(9)
    """)
    data = programs.directory / "data.txt"
    command = [sys.executable, "-m", "vramscope", "run", "train.py"]
    closed = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *command], cwd=programs.directory, env=programs.env, check=False)
    assert (closed.returncode, data.read_bytes()) == (0, b"mine")
    data.unlink()
    got = subprocess.run(command, cwd=programs.directory, env={**programs.env, "CLOSE": "1"}, capture_output=True, check=False)
    assert (got.returncode, data.read_bytes()) == (0, b"mine")


def test_long_and_odd_arguments_are_passed_on(programs):
    programs.write("import sys, torch\ntorch.Tensor(9)\nprint(len(sys.argv), sys.argv[1][:9], sys.argv[-1])")
    got = programs.same("train.py", "a\x1fpid=abc", *map(str, range(40_000)))
    assert got.out.startswith(b"40002 ")
    assert programs.events()[0]["settings"]["command"].endswith("…")


def test_without_a_directory_to_be_in_the_program_runs(programs):
    programs.write("import torch\nprint('ran')")
    script = programs.directory / "train.py"
    gone = programs.directory / "gone"
    gone.mkdir()
    command = f'cd {gone} && rmdir {gone} && exec "$@"'
    got = subprocess.run(
        ["sh", "-c", command, "sh", sys.executable, "-m", "vramscope", "run", str(script)],
        env={**programs.env, "PWD": os.fspath(gone)},
        capture_output=True,
        check=False,
    )
    assert (got.returncode, got.stdout) == (0, b"ran\n"), got.stderr
    assert got.stderr.count(b"\n") == 1
