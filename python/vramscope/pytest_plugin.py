"""The pytest plugin: limits of device memory, leaks as failing tests, and a report.

===============================================  =====================================================================
``@pytest.mark.vram_limit("2 GiB")``             fails the test where its own peak on any CUDA device is above the limit
``@pytest.mark.no_vram_leak(steps=5)``           runs the test again and again, and fails it where memory grows each time
``pytest --vramscope``                           shows what tests took and left behind
===============================================  =====================================================================

It is loaded by itself where vramscope is installed, and does nothing for tests without a mark. Neither torch nor the native
part of vramscope is imported here.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import sys
import types
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import pytest

from vramscope import leak_check, live
from vramscope.quantity import format_bytes, parse_bytes

if TYPE_CHECKING:
    import pluggy

_LIMIT, _NO_LEAK = "vram_limit", "no_vram_leak"
_NO_DEVICE = "not measured: there is no CUDA device here, and nobody keeps the peak of memory on the CPU"
_NO_TORCH = "not measured: nothing has imported torch"
_REPORT = "vramscope-report"
#: No module that can be imported has such a name.
_TEST = "<test>"

#: Tests that were run again and again.
_repeated: weakref.WeakSet[pytest.Item] = weakref.WeakSet()


class NotMeasured(pytest.PytestWarning):
    """A test has a mark of vramscope, and here it cannot be told whether it is kept."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The report, which is off unless asked for."""
    group = parser.getgroup("vramscope", "device memory")
    group.addoption("--vramscope", action="store_true", help="show the tests that took most device memory, and those that left some behind")
    group.addoption(
        "--vramscope-top", type=_number_of_tests, default=10, metavar="N", help="how many tests to show of each kind (10 unless told)"
    )


def _number_of_tests(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of tests to show; give 1 or more")
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marks known."""
    config.addinivalue_line(
        "markers", f'{_LIMIT}(limit): fail where the peak of device memory, above what was held before, is more: "2 GiB"'
    )
    config.addinivalue_line(
        "markers",
        f"{_NO_LEAK}(steps=5, warmup=2, allow_cycles=False): run the test warmup + steps times and fail where memory grows each time",
    )
    if config.getoption("--vramscope"):
        config.pluginmanager.register(Report(config), _REPORT)


# Limits.


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, pluggy.Result[None], None]:
    """Holds a test to its limit, and sees to it that no mark is passed over."""
    limit = _limit(item)
    report: Report | None = item.config.pluginmanager.get_plugin(_REPORT)
    peaks = live.Peaks() if limit is not None or report is not None else None
    outcome = yield
    above = peaks.above_before() if peaks is not None else None
    if above and report is not None:
        report.used[item.nodeid] = Used(max(above.values()), 0)
    if outcome.excinfo is not None:
        return
    if limit is not None:
        _hold_to(item, limit, above, outcome)
    if item.get_closest_marker(_NO_LEAK) is None:
        return
    if item not in _repeated:
        _fail(outcome, f"{_NO_LEAK} can run functions and methods of plain classes again and again, not those of `unittest.TestCase`")
    elif live.imported_torch() is None:
        _warn(item, f"{_NO_LEAK} {_NO_TORCH}", outcome)


def _limit(item: pytest.Item) -> int | None:
    mark = item.get_closest_marker(_LIMIT)
    if mark is None:
        return None
    if len(mark.args) != 1 or mark.kwargs:
        pytest.fail(f'{_LIMIT} takes one amount: @pytest.mark.{_LIMIT}("2 GiB")', pytrace=False)
    try:
        return parse_bytes(mark.args[0])
    except (TypeError, ValueError) as error:
        pytest.fail(f"{_LIMIT}: {error}", pytrace=False)


def _hold_to(item: pytest.Item, limit: int, above: dict[str, int] | None, outcome: pluggy.Result[None]) -> None:
    if above is None:
        _warn(item, f"{_LIMIT} {_NO_DEVICE if live.imported_torch() is not None else _NO_TORCH}", outcome)
        return
    over = {where: peak for where, peak in above.items() if peak > limit}
    if over:
        where = max(over, key=lambda name: over[name])
        _fail(
            outcome,
            f"the test took {format_bytes(over[where])} of device memory at its peak ({where}), "
            f"{format_bytes(over[where] - limit)} more than its limit of {format_bytes(limit)}",
        )


def _fail(outcome: pluggy.Result[None], text: str) -> None:
    outcome.force_exception(pytest.fail.Exception(text, pytrace=False))


def _warn(item: pytest.Item, text: str, outcome: pluggy.Result[None]) -> None:
    item.add_report_section("call", "vramscope", text)
    try:
        item.warn(NotMeasured(text))
    except NotMeasured:
        # Warnings are errors here.
        _fail(outcome, text)


# Leaks.


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test again and again that must not leak."""
    mark = pyfuncitem.get_closest_marker(_NO_LEAK)
    if mark is None:
        return None
    if mark.args:
        pytest.fail(f"{_NO_LEAK} takes names: @pytest.mark.{_NO_LEAK}(steps=5, warmup=2, allow_cycles=False)", pytrace=False)
    function: Callable[..., object] = pyfuncitem.obj
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        pytest.fail(f"{_NO_LEAK} cannot run a coroutine again and again; mark a test that is a plain function", pytrace=False)
    try:
        check = leak_check.LeakCheck(**mark.kwargs)
    except (TypeError, ValueError) as error:
        pytest.fail(f"{_NO_LEAK}: {error}".replace("LeakCheck.__init__()", "it"), pytrace=False)
    _repeated.add(pyfuncitem)
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    with _named({"self": pyfuncitem.instance, **arguments}):
        found = check.run(lambda: function(**arguments))
    if found is not None:
        pytest.fail(found.text(), pytrace=False)
    return True


@contextmanager
def _named(given: dict[str, object]) -> Iterator[None]:
    """Lets paths to what a test was given begin with its name there: ``<test>.service.history[*]``.

    Otherwise they would lead through pytest. Paths begin at the globals of modules, so these are made some for a while.
    """
    module = types.ModuleType(_TEST)
    # A request leads to everything in the session.
    vars(module).update((name, value) for name, value in given.items() if name != "request" and value is not None)
    sys.modules[_TEST] = module
    try:
        yield
    finally:
        del sys.modules[_TEST]
        vars(module).clear()


# The report.


class Used(NamedTuple):
    """What one test took."""

    #: Bytes at the peak of the device that it took most of, above what was held before.
    peak: int
    #: Bytes that are held after its teardown and were not before its setup, on all devices.
    left: int


class Report:
    """Sums up what tests took; part of the session with ``--vramscope``."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        #: By the name of the test.
        self.used: dict[str, Used] = {}

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, None, None]:
        """Around all of a test: a test lets go of what its fixtures gave it last of all."""
        before = _held()
        yield
        left = _held() - before
        if left > 0:
            # What only waits for the collector is not left behind.
            gc.collect()
            left = _held() - before
        if left > 0:
            self.used[item.nodeid] = self.used.get(item.nodeid, Used(0, 0))._replace(left=left)

    def pytest_sessionfinish(self) -> None:
        """Hands the figures to the process that reports, where this is one that pytest-xdist has started."""
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output[_REPORT] = {test: tuple(used) for test, used in self.used.items()}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Takes the figures of such a process."""
        output = getattr(node, "workeroutput", {})
        self.used.update((test, Used(*used)) for test, used in output.get(_REPORT, {}).items())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Shows them."""
        terminalreporter.section("device memory (vramscope)")
        if not self.used:
            terminalreporter.line("no test used a CUDA device, and nobody keeps the peak of memory on the CPU")
            return
        top = self.config.getoption("--vramscope-top")
        _table(terminalreporter, "peak", [(used.peak, test) for test, used in self.used.items()], top)
        left = [(used.left, test) for test, used in self.used.items() if used.left > 0]
        if left:
            terminalreporter.line("")
            _table(terminalreporter, "left behind", left, top)


def _held() -> int:
    """Bytes in use on all CUDA devices."""
    torch = live.imported_torch()
    return sum(live.cuda_bytes(torch).values()) if torch is not None and torch.cuda.is_initialized() else 0


def _table(reporter: pytest.TerminalReporter, heading: str, rows: list[tuple[int, str]], top: int) -> None:
    reporter.line(f"{heading:>12}  test")
    for amount, test in sorted(rows, key=lambda row: -row[0])[:top]:
        reporter.line(f"{format_bytes(amount):>12}  {test}")
    if len(rows) > top:
        reporter.line(f"{'':>12}  {len(rows) - top} more tests (--vramscope-top {len(rows)} shows them all)")
