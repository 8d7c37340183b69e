"""The pytest plugin, by sessions of pytest within pytest."""

from __future__ import annotations

from importlib import metadata

import pytest

# Before the sessions: what they import is forgotten at their ends, and torch cannot be imported twice.
torch = pytest.importorskip("torch")

from recorded import environment

pytest_plugins = ["pytester"]

HEAD = """
import gc, pytest, torch
kept = []
class Node:
    def __init__(self, n):
        self.me, self.data = self, torch.zeros(n)
"""


def is_installed():
    # `entry_points(group=…)` came with Python 3.10.
    return any(entry.value == "vramscope.pytest_plugin" for found in metadata.distributions() for entry in found.entry_points)


#: A mark that nobody knows is an error: a test that passes has had the plugin.
OPTIONS = ("-p", "no:cacheprovider", "--strict-markers", *(() if is_installed() else ("-p", "vramscope.pytest_plugin")))


@pytest.fixture(autouse=True)
def _by_hand(monkeypatch):
    """Where it thinks that it runs in CI, pytest repeats whole messages in its summary."""
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(pytester):
    """Runs a test file in this process; its tests are looked up by their names."""

    def run(text, *options):
        pytester.makepyfile(test_it=HEAD + text)
        return pytester.runpytest_inprocess(*OPTIONS, *options)

    return run


def text_of(result):
    return "\n".join(result.outlines)


# Leaks.


def test_a_leak_is_named_with_its_holder_and_its_line(run):
    got = run("""
def make(n):
    return torch.ones(n)

@pytest.mark.no_vram_leak(steps=4)
def test_leaks():
    kept.append(make(1 << 18))
""")
    got.assert_outcomes(failed=1)
    got.stdout.fnmatch_lines(
        [
            "memory of tensors grows every time: 4.0 MiB in 4 rounds on cpu",
            "  live before, and after each round: *",
            "  held by test_it.kept[[]*]: 6.0 MiB in 6 blocks, 3.0 MiB more than after the first round",
            "  made at test_it.py:8: 1.0 MiB in 1 tensor of the last round",
        ]
    )
    assert "leak_check.py" not in text_of(got), "no traceback of ours is shown"


def test_a_leak_through_the_autograd_graph(run):
    got = run("""
model = torch.nn.Linear(256, 256)

@pytest.mark.no_vram_leak
def test_leaks():
    kept.append(model(torch.ones(64, 256)).relu().sum())
""")
    got.assert_outcomes(failed=1)
    got.stdout.fnmatch_lines(["  held by test_it.kept[[]*] through the autograd graph: *", "  made at test_it.py:11: *"])


def test_a_cycle_is_called_one(run):
    text = """
@pytest.mark.no_vram_leak({})
def test_leaks():
    Node(1 << 18)
"""
    got = run(text.format(""))
    got.assert_outcomes(failed=1)
    got.stdout.fnmatch_lines(
        [
            "  reference cycle: * of it went when Python's collector ran; *",
            "  held by unreachable: Node.me: *",
            "  made at test_it.py:5: *",
        ]
    )
    run(text.format("allow_cycles=True")).assert_outcomes(passed=1)


def test_what_is_clean_passes(run):
    run("""
cache = {}

@pytest.mark.no_vram_leak
def test_nothing_stays():
    torch.ones(1 << 18).sum()

@pytest.mark.no_vram_leak(warmup=3)
def test_a_cache_fills_first():
    n = min(len(cache), 2)
    cache.setdefault(n, torch.ones(1 << (10 + n)))

@pytest.mark.no_vram_leak
def test_one_is_replaced_by_a_larger_one_now_and_then():
    cache["last"] = torch.ones(1000 if len(kept) % 3 else 2000)
    kept.append(0)

@pytest.mark.no_vram_leak
def test_what_grows_is_no_tensor():
    kept.append(bytearray(1 << 18))
""").assert_outcomes(passed=4)


def test_a_clean_test_is_not_run_more_often_than_it_needs(run):
    run("""
rounds = []

@pytest.mark.no_vram_leak(steps=50, warmup=2)
def test_clean():
    rounds.append(0)

def test_rounds():
    assert len(rounds) == 3
""").assert_outcomes(passed=2)


def test_parameters_fixtures_classes_and_marks_of_pytest(run):
    got = run(
        """
@pytest.fixture
def store():
    yield kept
    kept.clear()

@pytest.mark.parametrize("leaks", [True, False])
@pytest.mark.no_vram_leak(steps=3, warmup=1)
def test_parameters(store, leaks, request, tmp_path):
    if leaks:
        store.append(torch.ones(1000))

@pytest.mark.xfail(strict=True, reason="known")
@pytest.mark.no_vram_leak(steps=3, warmup=1)
def test_expected(store):
    store.append(torch.ones(1000))

@pytest.mark.no_vram_leak(steps=3, warmup=1)
class TestClass:
    def test_method(self, store):
        assert isinstance(self, TestClass)
        store.append(torch.ones(1000))

    def test_clean(self):
        pass

@pytest.mark.no_vram_leak(steps=3, warmup=1)
def test_skips():
    pytest.skip("not here")

@pytest.mark.no_vram_leak(steps=3, warmup=1)
def test_fails():
    assert kept == 5
""",
        "-rA",
    )
    got.assert_outcomes(passed=2, failed=3, xfailed=1, skipped=1)
    got.stdout.fnmatch_lines(["E       assert * == 5", "FAILED test_it.py::test_parameters[[]True] - *memory of tensors grows*"])
    assert "leak_check.py" not in text_of(got)


def test_a_leak_in_a_fixture_is_named_by_it(run):
    got = run("""
class Service:
    def __init__(self):
        self.history = []

@pytest.fixture(scope="module")
def service():
    return Service()

@pytest.mark.no_vram_leak
def test_leaks(service):
    service.history.append(torch.ones(1000))

class TestClass:
    @pytest.mark.no_vram_leak
    def test_method(self, request, tmp_path):
        self.__dict__.setdefault("mine", []).append(torch.ones(1000))

def test_after():
    import sys
    assert "<test>" not in sys.modules
""")
    got.assert_outcomes(passed=1, failed=2)
    got.stdout.fnmatch_lines(["  held by <test>.service.history[[]*]: *", "  held by <test>.self.mine[[]*]: *"])


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("no_vram_leak(steps=2)", "no_vram_leak: steps must be 3 or more, as fewer cannot tell growth from chance, not 2"),
        ("no_vram_leak(steps=-1)", "no_vram_leak: steps must be 3 or more*"),
        ("no_vram_leak(steps='5')", "no_vram_leak: steps must be a whole number of rounds, not '5'"),
        ("no_vram_leak(steps=True)", "no_vram_leak: steps must be a whole number of rounds, not True"),
        ("no_vram_leak(warmup=0)", "no_vram_leak: warmup must be 1 or more, as the first round fills caches, not 0"),
        ("no_vram_leak(rounds=5)", "no_vram_leak: *unexpected keyword argument 'rounds'*"),
        ("no_vram_leak(5)", "no_vram_leak takes names: @pytest.mark.no_vram_leak(steps=5, warmup=2, allow_cycles=False)"),
        ("vram_limit", 'vram_limit takes one amount: @pytest.mark.vram_limit("2 GiB")'),
        ("vram_limit('1 GiB', '2 GiB')", "vram_limit takes one amount*"),
        ("vram_limit(limit='1 GiB')", "vram_limit takes one amount*"),
        ("vram_limit('2 GiBs')", "vram_limit: `2 GiBs` is no amount of memory; write it as `2 GiB` or `500 MB`"),
        ("vram_limit('5')", "vram_limit: `5` is no amount of memory*"),
        ("vram_limit('-2 GiB')", "vram_limit: `-2 GiB` is no amount of memory*"),
        ("vram_limit(-5)", "vram_limit: a number of bytes cannot be negative: -5"),
        ("vram_limit(True)", "vram_limit: True is no amount of memory*"),
        ("vram_limit(1.5)", "vram_limit: 1.5 is no amount of memory*"),
        ("vram_limit(None)", "vram_limit: None is no amount of memory*"),
    ],
)
def test_wrong_arguments(run, mark, said):
    got = run(f"""
@pytest.mark.{mark}
def test_it():
    pass
""")
    got.assert_outcomes(failed=1)
    got.stdout.fnmatch_lines([said.replace("[", "[[]")])
    assert "Traceback" not in text_of(got) and "pytest_plugin.py" not in text_of(got)


def test_what_cannot_be_run_again_is_said(run):
    got = run("""
import unittest

@pytest.mark.no_vram_leak
class TestCase(unittest.TestCase):
    def test_it(self):
        pass

@pytest.mark.no_vram_leak
async def test_coroutine():
    pass
""")
    got.assert_outcomes(failed=2)
    got.stdout.fnmatch_lines(
        [
            "*no_vram_leak can run functions and methods of plain classes again and again, not those of `unittest.TestCase`",
            "no_vram_leak cannot run a coroutine again and again; mark a test that is a plain function",
        ]
    )


def test_the_collector_is_as_it_was(run):
    run("""
@pytest.mark.no_vram_leak
def test_leaks():
    assert not gc.isenabled()
    kept.append(torch.ones(1000))

def test_after():
    import tracemalloc
    assert gc.isenabled() and not tracemalloc.is_tracing()

@pytest.mark.no_vram_leak
def test_errs():
    raise ValueError

def test_after_that():
    assert gc.isenabled()
""").assert_outcomes(passed=2, failed=2)


# Limits, where there is no device.


no_device = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
LIMITED = """
@pytest.mark.vram_limit("1 MiB")
def test_limited():
    torch.ones(1 << 20)
"""


@no_device
def test_a_limit_that_cannot_be_measured_is_warned_of(run):
    got = run(LIMITED)
    got.assert_outcomes(passed=1, warnings=1)
    got.stdout.fnmatch_lines(["*NotMeasured: vram_limit not measured: there is no CUDA device here, *"])


@no_device
def test_that_warning_may_be_an_error_or_be_silenced(run):
    got = run(LIMITED, "-W", "error")
    got.assert_outcomes(failed=1)
    got.stdout.fnmatch_lines(["vram_limit not measured: *"])
    got = run(LIMITED, "-W", "ignore::vramscope.pytest_plugin.NotMeasured")
    got.assert_outcomes(passed=1)
    got.stdout.no_fnmatch_line("*NotMeasured*")


@no_device
def test_the_report_says_that_nothing_was_measured(run):
    got = run(LIMITED, "--vramscope")
    got.stdout.fnmatch_lines(["*device memory (vramscope)*", "no test used a CUDA device, and nobody keeps the peak of memory on the CPU"])


def test_the_options(run):
    got = run("", "--vramscope-top", "0")
    assert got.ret == pytest.ExitCode.USAGE_ERROR
    got.stderr.fnmatch_lines(["*`0` is no number of tests to show; give 1 or more"])
    assert "no_vram_leak(steps=5, warmup=2, allow_cycles=False)" in text_of(run("", "--markers"))
    run("def test_plain(): pass", "--strict-markers").assert_outcomes(passed=1)


# Limits and the report, on a make-believe device.


@pytest.fixture
def run_with(pytester, monkeypatch):
    """Runs a test file in a process of its own."""

    def run_with(text, *options, fake=True):
        for name, value in environment(fake).items():
            monkeypatch.setenv(name, value)
        pytester.makepyfile(test_it=text)
        return pytester.runpytest_subprocess(*OPTIONS, *options)

    return run_with


ON_A_DEVICE = """
import pytest
MIB = 1 << 20
kept = []

@pytest.mark.vram_limit("3 MiB")
def test_imports_torch():
    import torch
    torch.Tensor(2 * MIB)

@pytest.mark.vram_limit("3 MiB")
def test_takes_too_much():
    import torch
    torch.Tensor(5 * MIB)

@pytest.mark.vram_limit(3 * MIB)
def test_takes_less_on_top_of_what_is_there():
    import torch
    kept.append(torch.Tensor(2 * MIB))

@pytest.mark.vram_limit("1 MiB")
def test_fails_anyway():
    import torch
    torch.Tensor(5 * MIB)
    assert False, "its own reason"

@pytest.fixture
def tensor():
    import torch
    yield [torch.Tensor(MIB)]

def test_fixture(tensor):
    pass

def test_cycle():
    import torch
    ring = [torch.Tensor(MIB)]
    ring.append(ring)
"""


def test_limits_on_a_device(run_with):
    got = run_with(ON_A_DEVICE)
    got.assert_outcomes(passed=4, failed=2)
    got.stdout.fnmatch_lines(
        [
            "the test took 5.0 MiB of device memory at its peak (cuda:0), 2.0 MiB more than its limit of 3.0 MiB",
            "E       AssertionError: its own reason",
        ]
    )


def test_the_report_on_a_device(run_with):
    got = run_with(ON_A_DEVICE, "--vramscope", "--vramscope-top=3")
    got.stdout.fnmatch_lines(
        [
            "        peak  test",
            "     5.0 MiB  test_it.py::test_takes_too_much",
            "     5.0 MiB  test_it.py::test_fails_anyway",
            "     2.0 MiB  test_it.py::test_imports_torch",
            "              3 more tests (--vramscope-top 6 shows them all)",
            "",
            " left behind  test",
            "     2.0 MiB  test_it.py::test_takes_less_on_top_of_what_is_there",
        ]
    )
    assert text_of(got).count("left behind") == 1 and text_of(got).count("test_fixture") == 0


def test_the_report_of_several_processes(run_with):
    pytest.importorskip("xdist")
    got = run_with(ON_A_DEVICE, "--vramscope", "-n", "2", "-p", "xdist")
    got.stdout.fnmatch_lines(
        ["        peak  test", "     5.0 MiB  test_it.py::test_*", " left behind  test", "     2.0 MiB  test_it.py::test_takes_less*"]
    )
    assert text_of(got).count("MiB  test_it.py::") == 6


def test_a_device_that_is_not_touched_is_below_every_limit(run_with):
    text = "import pytest, torch\n@pytest.mark.vram_limit(0)\ndef test_it(): pass\n"
    run_with(text, "-W", "error").assert_outcomes(passed=1)


LEAKS_ON_A_DEVICE = """
import pytest, torch
kept = [torch.Tensor(1 << 20)]

def make():
    return torch.Tensor(1 << 20)

@pytest.mark.no_vram_leak
def test_leaks():
    torch.Tensor(5 << 20)
    kept.append(make())

@pytest.mark.no_vram_leak
def test_clean():
    torch.Tensor(5 << 20)

def test_history():
    assert torch.allocator.trace is None

def test_the_history_is_the_programs():
    torch.cuda.memory._record_memory_history()
    kept.append(torch.Tensor(7 << 20))

@pytest.mark.no_vram_leak
def test_leaks_again():
    kept.append(make())

def test_history_again():
    assert torch.allocator.trace
"""


def test_a_leak_on_a_device_is_named_with_its_line(run_with):
    got = run_with(LEAKS_ON_A_DEVICE)
    got.assert_outcomes(passed=4, failed=2)
    said = [
        "memory of tensors grows every time: 5.0 MiB in 5 rounds on cuda:0",
        "  made at test_it.py:5 in make: 1.0 MiB in 1 block of the last round",
    ]
    got.stdout.fnmatch_lines(said * 2)
    assert text_of(got).count("  made at ") == 2


# Without torch.


NO_TORCH = """
import pytest, sys

@pytest.mark.no_vram_leak
def test_leaks():
    assert sys.modules.get("torch") is None

@pytest.mark.vram_limit("1 MiB")
def test_limit():
    pass

def test_plain():
    assert "vramscope._native" not in sys.modules
"""


def test_nothing_needs_torch(run_with, pytester):
    pytester.makepyfile(torch="raise ModuleNotFoundError('No module named torch', name='torch')")
    got = run_with(NO_TORCH, "--vramscope", fake=False)
    got.assert_outcomes(passed=3, warnings=2)
    got.stdout.fnmatch_lines(
        [
            "*NotMeasured: no_vram_leak not measured: nothing has imported torch",
            "*NotMeasured: vram_limit not measured: nothing has imported torch",
            "no test used a CUDA device*",
        ]
    )


def test_torch_that_is_blocked_is_as_one_that_is_not_there(run_with, pytester):
    pytester.makeconftest("import sys\nsys.modules['torch'] = None")
    run_with(NO_TORCH, "--vramscope", fake=False).assert_outcomes(passed=3, warnings=2)
