"""A program under ``vramscope run`` sees what it would see without, and leaves what it would leave."""

from __future__ import annotations

import sys

import pytest

pytest.register_assert_rewrite("recorded")

from recorded import Programs

LOOK = """
    import os, sys
    import torch
    import __main__
    print(sys.argv, sys.path, __name__, __file__, __spec__ and (__spec__.name, __spec__.origin))
    print(__package__, __builtins__, __loader__.__class__)
    print(sorted(vars(__main__)), sys.modules["__main__"] is __main__, sys.modules["torch"].__loader__.__class__)
    print(torch.__spec__.loader.__class__, "sitecustomize" in sys.modules, getattr(sys, "orig_argv", None), sys.flags)
    print(sorted(item for item in os.environ.items() if item[0] != "_"))
    print([finder for finder in sys.meta_path if "vramscope" in type(finder).__module__])
"""


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path)


@pytest.mark.parametrize("flags", [(), ("-u",), ("-O",), ("-X", "utf8"), ("-W", "error", "-b"), ("-s", "-B")])
def test_a_script_sees_the_same(programs, flags):
    out = programs.same(programs.write(LOOK, "some/train.py"), "--lr", "3", "--quiet", "-m", flags=flags).out
    assert b"'--lr', '3', '--quiet', '-m'" in out


def test_a_module_a_directory_and_a_link_see_the_same(programs):
    programs.write("", "package/__init__.py")
    programs.write(LOOK, "package/train.py")
    programs.write(LOOK, "package/__main__.py")
    (programs.directory / "link.py").symlink_to("package/train.py")
    programs.same("-m", "package.train", "x")
    programs.same("-m", "package")
    programs.same("package", "x")
    programs.same("link.py")


def test_a_command_that_starts_python_is_recorded(programs):
    programs.write("import torch; torch.Tensor(512); torch.optim.SGD().step(); print('done')")
    got = programs.recorded(sys.executable, "train.py")
    assert (got.status, got.out) == (0, b"done\n")
    assert "window1.pickle" in programs.files()
    programs.write("#!/bin/sh\nexec " + sys.executable + " train.py\n", "train.sh")
    (programs.directory / "train.sh").chmod(0o755)
    assert programs.recorded("./train.sh").out == b"done\n"


def test_what_is_not_there_is_said_by_python(programs):
    programs.same("nothing.py")
    programs.same("-m", "nothing.at_all")


def test_the_users_sitecustomize_is_imported(programs):
    programs.write("print('customized')", "mine/sitecustomize.py")
    programs.env["PYTHONPATH"] += ":" + str(programs.directory / "mine")
    programs.write(LOOK)
    want, got = programs.plain("train.py"), programs.recorded("train.py", options=("--quiet",))
    # The Python that starts the program imports it as well.
    assert got.out == b"customized\n" + want.out


def test_own_modules_named_like_those_of_python_are_imported(programs):
    for name in ("statistics", "queue", "csv", "random"):
        programs.write(f"print('my own {name}')", f"{name}.py")
    text = "import queue, random, statistics, csv\nimport torch\ntorch.Tensor(512)\ntorch.optim.SGD().step()"
    assert programs.same(programs.write(text)).out.count(b"my own") == 4


def test_without_torch_nothing_is_recorded_and_that_is_said(programs):
    got = programs.recorded(programs.write("print(1)"))
    assert (got.status, got.out) == (0, b"1\n")
    assert got.err == "vramscope: nothing was recorded: the program did not import torch\n"
    assert not (programs.directory / ".vramscope").exists()


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_a_python_that_ignores_the_environment_runs_on(programs, flag):
    programs.write("print('done')")
    begin = f"import sys; sys.path.insert(0, {programs.env['PYTHONPATH'].split(':')[-1]!r}); sys.argv = ['vramscope', 'run', 'train.py']"
    program = f"{begin}; from vramscope.__main__ import main; main()"
    got = programs.python(flag, "-c", program)
    assert (got.status, got.out) == (0, b"done\n")
    assert "nothing is recorded" in got.err


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit(3)",
        "sys.exit('in words')",
        "sys.exit(None)",
        "sys.exit()",
        "exit(300)",
        "raise SystemExit(True)",
        "raise ValueError('wrong')",
        "1 / 0",
        "raise KeyboardInterrupt",
        "os.kill(os.getpid(), signal.SIGINT); time.sleep(9)",
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(os.getpid(), signal.SIGSEGV)",
        "os.kill(os.getpid(), signal.SIGHUP); time.sleep(9)",
        "os.abort()",
        "os._exit(7)",
        "sys.excepthook = lambda *_: print('my hook'); 1 / 0",
        "threading.Thread(target=lambda: 1 / 0, name='T').start(); time.sleep(0.1)",
        "threading.Thread(target=lambda: (time.sleep(0.3), print('late'))).start()",
        "atexit.register(print, 'at exit'); print('end')",
        "atexit.register(lambda: print('at exit', file=sys.stderr)); sys.exit(4)",
        "sys.stdout = open(os.devnull, 'w'); sys.stderr = None; print('lost')",
        "os.close(1); os.close(2)",
        "os.closerange(0, 64)",
        "sys.stderr.close(); sys.exit(5)",
        "os.chdir('/'); sys.exit(6)",
        "def f(): raise RuntimeError from OSError('x')\nf()",
        "import nothing_of_this_name",
        "import broken",
        "x = (",
        "torch.Tensor(1 << 50)",
    ],
)
@pytest.mark.parametrize("work", ["import torch\ntorch.Tensor(512); torch.optim.SGD().step()\n", ""], ids=["recorded", "idle"])
def test_it_ends_the_same(programs, end, work):
    programs.write("def f(): raise ImportError('broken inside')\nf()", "broken.py")
    head = "import atexit, os, signal, sys, threading, time\n"
    if not work and "torch" in end:
        end = "import torch; " + end
    programs.write("", "train.py")
    (programs.directory / "train.py").write_text(head + work + "print('begin', flush=True)\n" + end + "\n")
    programs.same("train.py")
    if work and end != "x = (":
        assert not [name for name in programs.files() if name.startswith(".")]


def test_torch_that_cannot_be_imported_is_told_as_without(programs):
    programs.write("def load():\n    raise ImportError('libcudart.so: cannot open shared object file')\nload()", "torch/__init__.py")
    programs.env["PYTHONPATH"] = str(programs.directory) + ":" + programs.env["PYTHONPATH"]
    err = programs.same(programs.write("try:\n    import torch\nexcept ImportError:\n    print('none')\nimport torch")).err
    assert "vramscope" not in err and "libcudart" in err


def test_the_main_module_can_be_pickled_and_imported_by_spawned_processes(programs):
    programs.write("""
        import dataclasses, multiprocessing, pickle
        import torch

        @dataclasses.dataclass
        class Point:
            x: int

        def work(point):
            return point.x + 1

        if __name__ == "__main__":
            torch.optim.SGD().step()
            print(pickle.loads(pickle.dumps(Point(3))))
            for method in ("spawn", "fork", "forkserver"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    print(pool.map(work, [Point(1), Point(2)]))
    """)
    assert b"[2, 3]\n" * 3 in programs.same("train.py").out
    assert not [name for name in programs.files() if name.startswith("process")]


def test_an_error_keeps_its_traceback(programs):
    programs.write("""
        import torch
        def deep(n):
            return deep(n - 1) if n else torch.Tensor(1 << 60)
        for batch in torch.utils.data.dataloader._BaseDataLoaderIter(range(3)):
            torch.autograd.backward()
            torch.optim.SGD().step()
        deep(3)
    """)
    err = programs.same("train.py").err
    assert "OutOfMemoryError" in err and err.count("in deep") == 3


def test_final_lines_come_after_the_programs_own(programs):
    programs.write("""
        import atexit, sys
        import torch
        atexit.register(lambda: print("last words", file=sys.stderr))
        kept = [torch.Tensor(512)]
        torch.optim.SGD().step()
        print("out")
    """)
    got = programs.recorded("train.py")
    assert got.out == b"out\n"
    assert got.err.startswith("last words\n")
    assert "vramscope: recorded in .vramscope/20" in got.err.splitlines()[-1]
    assert programs.recorded("train.py", options=("--quiet",)).err == "last words\n"
