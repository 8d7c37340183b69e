"""When a window of history is opened and when it is closed. Pure: moments in, decisions out."""

from __future__ import annotations

from typing import NamedTuple

from vramscope.options import Options
from vramscope.trend import Growth

#: Windows of a run at most; those that were asked for come on top.
MOST_WINDOWS = 12
#: Steps that a window has at least, unless the program ends.
FEWEST_STEPS = 5
#: A window is waited for so many times its length after the last one.
FIRST_WAIT = 5
#: A window without steps that has lasted so many times its seconds is closed.
PATIENCE = 20
#: Parts of a window after which what there is so far is saved: what happens next may be the end. Those in between only where
#: saving takes no longer than so many seconds.
SAVED_AT, SAVED_IF_QUICK, QUICK_S = (1 / 6, 1 / 2), (1 / 3, 3 / 4), 0.3
#: High points of a window at which holders are taken.
MOST_HIGHS = 3
#: Bytes that a high point is above the window's floor at least, and how much higher than the last one it is.
LEAST_HIGH, HIGHER = 8 << 20, 1.5


class Moment(NamedTuple):
    """Where the program is."""

    #: Steps since the recording began, whatever they are counted by.
    steps: int
    #: Seconds of a clock that never goes back.
    seconds: float
    #: Entries of history that were made since the program began; 0 where that is not known.
    events: int
    #: Bytes that the program holds on its devices.
    allocated: int


class Window:
    """A stretch of the run whose history is recorded."""

    def __init__(self, number: int, reason: str, start: Moment) -> None:
        self.number = number
        self.reason = reason
        self.start = start
        self.last_high = 0
        self.highs = 0
        self.floor = start.allocated
        #: Steps of the window at the last save, and the seconds that it took.
        self.saved_at, self.saving_s = 0, 0.0

    @property
    def name(self) -> str:
        """How its files are called."""
        return f"window{self.number}"

    def has_saved(self, now: Moment, seconds: float) -> None:
        """Note that what it has so far was saved, and how long that took."""
        self.saved_at = now.steps - self.start.steps
        self.saving_s = seconds

    def is_high(self, now: Moment) -> bool:
        """Whether so much more memory is held than before that holders should be taken."""
        self.floor = min(self.floor, now.allocated)
        above = now.allocated - self.floor
        if self.highs >= MOST_HIGHS or above < LEAST_HIGH or above < HIGHER * self.last_high:
            return False
        if now.steps - self.start.steps < FEWEST_STEPS:
            # The model and the optimizer's state are being created.
            self.floor = now.allocated
            return False
        self.highs += 1
        self.last_high = above
        return True


class Windows:
    """Decides. Windows that are opened because memory grows become rarer, since each costs the program time."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.opened = 0
        self.open: Window | None = None
        self.wait = FIRST_WAIT
        #: When the last one was closed, and why it had been opened.
        self.last: Moment | None = None
        self.last_growth: Growth | None = None

    def reason_to_open(self, now: Moment, growth: Growth | None) -> str | None:
        """Why a window should be opened now; None where it should not."""
        options = self.options
        if self.open is not None:
            return None
        if self.opened == 0 and (options.first_window or options.always):
            return "always" if options.always else "first"
        if self.opened >= MOST_WINDOWS:
            return None
        since = self.last
        if options.every_s and now.seconds >= (since.seconds if since else 0.0) + options.every_s:
            return "every"
        if growth is None or not self._has_waited(now, since, growth):
            return None
        return growth.kind

    def _has_waited(self, now: Moment, since: Moment | None, growth: Growth) -> bool:
        before = self.last_growth
        if since is None or before is None:
            # Nothing was suspected so far.
            return since is None or now.steps > since.steps or now.seconds - since.seconds > self.options.seconds
        if growth.kind != before.kind or growth.bytes_per_step > 2 * before.bytes_per_step:
            return True
        if now.steps > since.steps:
            return now.steps - since.steps >= self.wait * self.options.steps
        return now.seconds - since.seconds >= self.wait * self.options.seconds

    def has_opened(self, reason: str, now: Moment, growth: Growth | None) -> Window:
        """Note that a window was opened."""
        if growth is not None and reason == growth.kind:
            before = self.last_growth
            is_same = before is not None and growth.kind == before.kind
            self.wait = self.wait * 2 if is_same else FIRST_WAIT
            self.last_growth = growth
        self.opened += 1
        self.open = Window(self.opened, reason, now)
        return self.open

    def reason_to_close(self, now: Moment) -> str | None:
        """Why the open window should be closed now; None where it should not."""
        window = self.open
        if window is None or self.options.always:
            return None
        steps = now.steps - window.start.steps
        seconds = now.seconds - window.start.seconds
        if steps >= self.options.steps:
            return "steps"
        if steps < FEWEST_STEPS:
            return "no steps" if seconds >= PATIENCE * self.options.seconds else None
        if seconds >= self.options.seconds:
            return "seconds"
        if now.events - window.start.events >= 0.9 * self.options.max_entries:
            return "events"
        return None

    def is_time_to_save(self, now: Moment) -> bool:
        """Whether what the open window has so far should be saved."""
        window = self.open
        if window is None:
            return False
        whole, steps, last = self.options.steps, now.steps - window.start.steps, window.saved_at
        if steps >= whole:
            # Only a window that lasts all the time gets here.
            return steps >= 2 * max(last, whole / 2)
        marks = SAVED_AT + (SAVED_IF_QUICK if window.saving_s <= QUICK_S else ())
        return any(last < max(FEWEST_STEPS, mark * whole) <= steps for mark in marks)

    def has_closed(self, now: Moment) -> None:
        """Note that the window was closed."""
        self.open = None
        self.last = now


class Looks:
    """Decides when holders are looked for between windows, where no counters of a device tell of growth.

    That is at every doubling of the steps, and not so soon after the last look that it would cost more than 0.5 % of the time.
    """

    #: A look is made at most once in so many times what it costs.
    COSTS = 200

    def __init__(self) -> None:
        self.number = 0
        self._steps, self._seconds, self._cost_s = 0, 0.0, 0.0

    def is_time(self, now: Moment, last: Moment | None) -> bool:
        """Whether it is time for one; `last` is the end of the last window."""
        if last is None:
            return False
        after = max(self._steps, last.steps)
        return now.steps >= 2 * max(after, 1) and now.seconds - self._seconds >= self.COSTS * self._cost_s

    def has_looked(self, now: Moment, cost_s: float) -> None:
        """Note that one was made, and the seconds that it took."""
        self._steps, self._seconds, self._cost_s = now.steps, now.seconds, cost_s
