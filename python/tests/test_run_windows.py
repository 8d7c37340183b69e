"""When windows of history are opened and closed, as functions of figures."""

from __future__ import annotations

import random

import pytest
from vramscope.directory import expendable
from vramscope.options import Options
from vramscope.steps import Rounds
from vramscope.trend import MOST_BLOCKS, Trend, median
from vramscope.windows import MOST_HIGHS, MOST_WINDOWS, Moment, Windows

MIB = 1 << 20


def growth(series):
    trend, seen = Trend(), []
    for step, allocated in enumerate(series):
        if trend.add(step, int(allocated)):
            found = trend.growth()
            seen += [found] if found else []
    assert len(trend.floors) <= MOST_BLOCKS
    return seen


def noisy(series, bytes_, seed=1):
    draw = random.Random(seed)
    return [value + draw.uniform(0, bytes_) for value in series]


@pytest.mark.parametrize(
    ("series", "kind"),
    [
        # Flat, with and without noise, long and short.
        ([900 * MIB] * 5000, None),
        (noisy([900 * MIB] * 5000, 300 * MIB), None),
        (noisy([900 * MIB] * 200, 5 * MIB), None),
        # Warm-up: the optimizer's state, then flat; a cache that fills up.
        ([100 * MIB] * 2 + [300 * MIB] * 3000, None),
        ([min(step, 8) * 10 * MIB for step in range(3000)], None),
        # Two sizes in turn; evaluation every 100 steps.
        ([(100 + 50 * (step % 2)) * MIB for step in range(3000)], None),
        ([(100 + 200 * (step % 100 > 90)) * MIB for step in range(3000)], None),
        # Leaks: large, small, noisy, late, in steps of an epoch.
        ([step * MIB for step in range(100)], "growth"),
        ([100 * MIB + step * 16384 for step in range(2000)], "growth"),
        (noisy([900 * MIB + step * 2 * MIB for step in range(2000)], 100 * MIB), "growth"),
        ([100 * MIB + max(0, step - 4000) * MIB for step in range(6000)], "growth"),
        ([100 * MIB + step // 50 * 20 * MIB for step in range(3000)], "growth"),
        # Garbage that waits for the collector.
        ([100 * MIB + step % 30 * 4 * MIB for step in range(600)], "sawtooth"),
        (noisy([100 * MIB + step % 45 * 10 * MIB for step in range(900)], MIB), "sawtooth"),
    ],
)
def test_growth_is_seen_where_there_is_some(series, kind):
    kinds = {found.kind for found in growth(series)}
    assert kinds == ({kind} if kind else set()) or (kind == "sawtooth" and kind in kinds)


def test_the_slope_is_in_bytes_a_step():
    found = growth([step * MIB for step in range(1000)])[-1]
    assert found.bytes_per_step == MIB
    # Fast programs are not read at every step.
    trend = Trend()
    for step in range(0, 10_000, 7):
        trend.add(step, step * MIB)
    assert trend.growth().bytes_per_step == pytest.approx(MIB)


def test_median():
    assert (median([3, 1, 2]), median([4, 1, 2, 3])) == (2, 2.5)


class Run:
    """Plays a program to the policy: 10 ms a step, 100 entries of history a step."""

    def __init__(self, options=None, seconds_a_step=0.01, events_a_step=100):
        self.windows = Windows(options or Options())
        self.step_s, self.events = seconds_a_step, events_a_step
        self.log, self.saving_s = [], 0.1

    def play(self, steps, found=lambda step: None, allocated=lambda step: 0):
        for step in range(steps):
            now = Moment(step, step * self.step_s, step * self.events, allocated(step))
            closing = self.windows.reason_to_close(now)
            if closing:
                self.windows.has_closed(now)
                self.log.append((step, "close", closing))
            elif self.windows.is_time_to_save(now):
                self.windows.open.has_saved(now, self.saving_s)
                self.log.append((step, "save", ""))
            elif self.windows.open and self.windows.open.is_high(now):
                self.log.append((step, "high", ""))
            opening = self.windows.reason_to_open(now, found(step))
            if opening:
                self.windows.has_opened(opening, now, found(step))
                self.log.append((step, "open", opening))
        return self.log


def options(**values):
    made = Options()
    vars(made).update(values)
    return made


def test_a_quiet_program_has_one_window():
    saves = [(step, "save", "") for step in (10, 20, 30, 45)]
    assert Run().play(100_000) == [(0, "open", "first"), *saves, (60, "close", "steps")]
    slow = Run()
    slow.saving_s = 2.0
    assert [step for step, what, _ in slow.play(1000) if what == "save"] == [10, 30]
    assert Run(options(first_window=False)).play(100_000) == []


@pytest.mark.parametrize(
    ("run", "closed"),
    [
        (Run(options(steps=20)), (20, "close", "steps")),
        (Run(seconds_a_step=2.0), (15, "close", "seconds")),
        (Run(seconds_a_step=100.0), (5, "close", "seconds")),
        (Run(events_a_step=20_000), (9, "close", "events")),
        (Run(events_a_step=1_000_000), (5, "close", "events")),
    ],
)
def test_a_window_ends_with_what_comes_first_but_not_before_a_few_steps(run, closed):
    assert [entry for entry in run.play(200) if entry[1] == "close"] == [closed]


def test_a_window_without_steps_ends_too():
    windows = Windows(Options())
    windows.has_opened("first", Moment(0, 0.0, 0, 0), None)
    assert windows.reason_to_close(Moment(0, 500.0, 0, 0)) is None
    assert windows.reason_to_close(Moment(0, 700.0, 0, 0)) == "no steps"


def test_growth_opens_windows_that_become_rarer():
    from vramscope.trend import Growth

    log = Run().play(100_000, lambda step: Growth("growth", 100.0, MIB) if step > 1000 else None)
    opened = [step for step, what, _ in log if what == "open"]
    assert opened[:2] == [0, 1001]
    pauses = [after - before for before, after in zip(opened[1:], opened[2:])]
    assert len(pauses) >= 4 and all(1.8 < after / before < 2.2 for before, after in zip(pauses, pauses[1:]))


def test_faster_growth_and_other_growth_do_not_wait():
    from vramscope.trend import Growth

    faster = Run().play(5000, lambda step: Growth("growth", 1.1 ** (step / 10), MIB) if step > 100 else None)
    assert sum(what == "open" for _, what, _ in faster) == MOST_WINDOWS
    other = Run().play(650, lambda step: Growth("growth" if step < 300 else "sawtooth", 1.0, MIB) if step > 100 else None)
    assert [(step, why) for step, what, why in other if what == "open"] == [(0, "first"), (101, "growth"), (300, "sawtooth")]


def test_windows_on_a_clock_and_all_the_time():
    log = Run(options(every_s=10)).play(10_000)
    assert [round(step / 1060) for step, what, _ in log if what == "open"] == list(range(10))
    assert Run(options(always=True)).play(10_000)[0] == (0, "open", "always")
    always = Run(options(always=True)).play(1000)
    assert [step for step, what, _ in always if what == "save"] == [10, 20, 30, 45, 90, 180, 360, 720]
    assert not [entry for entry in always if entry[1] == "close"]


def test_holders_are_taken_at_high_points():
    leak = Run(options(steps=100)).play(200, allocated=lambda step: step * 4 * MIB)
    highs = [step for step, what, _ in leak if what == "high"]
    assert len(highs) == MOST_HIGHS and highs == sorted(highs)
    assert not [entry for entry in Run().play(200, allocated=lambda step: 900 * MIB) if entry[1] == "high"]
    # The model and the optimizer's state come first.
    warm = Run().play(200, allocated=lambda step: min(step, 4) * 100 * MIB)
    assert not [entry for entry in warm if entry[1] == "high"]


def test_several_optimizers_make_one_round():
    def rounds(order):
        seen = Rounds()
        return [name for name in order if seen.ends(ord(name))]

    assert rounds("dgdgdg") == ["d", "d", "d"]
    assert rounds("gddgdd") == ["g", "g"]
    # One that has ended gives way.
    assert rounds("a" * 3 + "b" * 100)[:5] == ["a", "a", "a", "b", "b"]


def test_what_is_dropped_first():
    names = ["window1.step10.pickle", "window1.pickle", "window2.holders.json", "window2.pickle", "window3.pickle", "oom1.pickle"]
    dropped = []
    while (name := expendable([name for name in names if name not in dropped])) is not None:
        dropped.append(name)
    assert dropped == ["window2.pickle", "window3.pickle", "window2.holders.json", "window1.step10.pickle"]


def test_options_travel_as_text():
    made = options(steps=7, first_window=False, out="/tmp/a b=c\nd", every_s=3)
    assert vars(Options.from_text(made.to_text())) == vars(made)
    assert vars(Options.from_text("unknown=1")) == vars(Options())
