"""The pytest plugin: limits of device memory, leaks as failing tests, and a report.

===============================================  =====================================================================
``@pytest.mark.vram_limit("2 GiB")``             fails the test where its own peak on any CUDA device is above the limit
``@pytest.mark.no_vram_leak(steps=5)``           runs the test again and again, and fails it where memory grows each time
``pytest --vramscope``                           shows what tests took and left behind
===============================================  =====================================================================

It is loaded by itself where vramscope is installed, and does nothing for tests without a mark.
"""

from __future__ import annotations

import gc
import inspect
from typing import Any, Iterator, List, Optional

import pytest

from vramscope import leak_check, live
from vramscope.quantity import format_bytes, parse_bytes

_NO_PEAK = "not measured: there is no CUDA device here, and nobody keeps the peak of memory on the CPU"


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("vramscope", "device memory")
    group.addoption(
        "--vramscope", action="store_true", help="show the tests that took most device memory, and those that left some behind"
    )
    group.addoption(
        "--vramscope-top", type=int, default=10, metavar="N", help="how many tests to show of each kind (10 unless told)"
    )


def pytest_configure(config: Any) -> None:
    config.addinivalue_line(
        "markers", 'vram_limit(limit): fail where the peak of device memory, above what was held before, is more: "2 GiB"'
    )
    config.addinivalue_line(
        "markers",
        "no_vram_leak(steps=5, warmup=2, allow_cycles=False): run the test warmup + steps times and fail where memory grows each time",
    )
    config.stash[_USED] = []


_USED: "pytest.StashKey[List[Used]]" = pytest.StashKey()


class Used:
    """What one test took."""

    def __init__(self, test: str, peak: int, left: int) -> None:
        self.test = test
        #: bytes at the peak, above what was held before
        self.peak = peak
        #: bytes that are held afterwards and were not before
        self.left = left


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    limit = _limit(item)
    shown = item.config.getoption("--vramscope")
    if limit is None and not shown or not live.counts_peaks():
        yield
        if limit is not None:
            item.add_report_section("call", "vramscope", f"vram_limit {_NO_PEAK}")
            item.warn(pytest.PytestWarning(f"vram_limit {_NO_PEAK}"))
        return
    peaks = live.Peaks()
    outcome = yield
    used, where = _used(item.nodeid, peaks)
    item.config.stash[_USED].append(used)
    if limit is not None and used.peak > limit and outcome.excinfo is None:
        outcome.force_exception(
            pytest.fail.Exception(
                f"the test took {format_bytes(used.peak)} of device memory at its peak ({where}), "
                f"{format_bytes(used.peak - limit)} more than its limit of {format_bytes(limit)}",
                pytrace=False,
            )
        )


def _limit(item: Any) -> Optional[int]:
    mark = item.get_closest_marker("vram_limit")
    if mark is None:
        return None
    if len(mark.args) != 1 or mark.kwargs:
        raise pytest.UsageError('vram_limit takes one amount: @pytest.mark.vram_limit("2 GiB")')
    try:
        return parse_bytes(mark.args[0])
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"vram_limit: {error}") from None


def _used(test: str, peaks: live.Peaks) -> "tuple[Used, str]":
    """What a test took, and the device on which it took most."""
    above = peaks.above_before()
    if not above:
        return Used(test, 0, 0), ""
    where = max(above, key=lambda name: above[name])
    left = sum(live.bytes_by_device().values()) - sum(peaks.before.values())
    return Used(test, max(0, above[where]), left), where


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Optional[bool]:
    mark = pyfuncitem.get_closest_marker("no_vram_leak")
    if mark is None:
        return None
    if mark.args:
        raise pytest.UsageError("no_vram_leak takes names: @pytest.mark.no_vram_leak(steps=5, warmup=2, allow_cycles=False)")
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        raise pytest.UsageError("no_vram_leak cannot run a coroutine again and again; mark a test that is a plain function")
    try:
        check = leak_check.LeakCheck(**mark.kwargs)
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"no_vram_leak: {error}") from None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    found = check.run(lambda: pyfuncitem.obj(**arguments))
    if found is not None:
        pytest.fail(found.text(), pytrace=False)
    return True


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    if not config.getoption("--vramscope"):
        return
    terminalreporter.section("device memory (vramscope)")
    used: List[Used] = config.stash[_USED]
    if not used:
        terminalreporter.line(_NO_PEAK if not live.counts_peaks() else "no test took any")
        return
    top = config.getoption("--vramscope-top")
    gc.collect()
    _table(terminalreporter, "peak", sorted(used, key=lambda u: -u.peak)[:top], lambda u: u.peak)
    left = [u for u in sorted(used, key=lambda u: -u.left) if u.left > 0][:top]
    if left:
        terminalreporter.line("")
        _table(terminalreporter, "left behind", left, lambda u: u.left)


def _table(reporter: Any, heading: str, rows: "List[Used]", figure: Any) -> None:
    reporter.line(f"{heading:>12}  test")
    for used in rows:
        reporter.line(f"{format_bytes(figure(used)):>12}  {used.test}")
