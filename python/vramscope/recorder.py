"""Watches one process: reads counters at the end of steps, records windows of history, saves all of it.

Every way in from the program goes through :meth:`Recorder.entered`: one thing at a time, and an error of ours ends the
recording, never the program.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Not through their modules: what a program puts there, for a test, is for itself.
from os import getpid
from time import monotonic
from typing import Any

from vramscope import place, recording
from vramscope.collector import Collector
from vramscope.directory import EVENTS, STATISTICS, Directory, event_text
from vramscope.history import History
from vramscope.interruption import is_of_the_program
from vramscope.options import Options
from vramscope.sampling import Sampler
from vramscope.saves import Saves, Step
from vramscope.saying import say
from vramscope.signals import Signals
from vramscope.statistics import COLUMNS, CudaFigures, Row, now_us, row_text, rss_bytes
from vramscope.steps import CLOCK, NAMES, Steps
from vramscope.trend import Growth, Trend
from vramscope.windows import Looks, Moment, Window, Windows

#: Seconds between two readings at least.
LEAST_BETWEEN_S = 0.002
#: A reading is made at most once in so many times what it costs: that is 0.5 % of the program's time, and 5 % in a window.
COSTS, COSTS_IN_WINDOW = 200, 20
#: Seconds that rows wait to be written at most.
FLUSH_S = 1.0
#: Snapshots at out-of-memory errors: how many, and seconds between them at least.
MOST_OOMS, BETWEEN_OOMS_S = 3, 10.0
#: Seconds without a step after which figures are read by the clock again.
STILL_S = 10.0


class Recorder:
    """The recorder of this process. Figures are of CUDA's allocator once that is there, else of the process."""

    def __init__(self, options: Options, torch: Any) -> None:
        self.options = options
        self.torch = torch
        self.pid = getpid()
        self.started_us = now_us()
        self.is_on = True
        self.phase = ""
        self.rss = 0
        self.directory: Directory | None = None
        self.cuda: CudaFigures | None = None
        self.history: History | None = None
        self.saves: Saves | None = None
        self.windows = Windows(options)
        self.looks = Looks()
        self.trend = Trend()
        self.growth: Growth | None = None
        self.steps = Steps(self.step_ended)
        self.signals = Signals(self.terminated, self.want_window)
        self.sampler = Sampler(self)
        self.collector = Collector(self.allocated_now, self.collection_freed, self.collection_begins)
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self.lock = threading.RLock()
        self._depth = 0
        self._dies = False
        self._wanted = ""
        self._next_reading = self._last_flush = self._last_step_s = 0.0
        self._ooms, self._last_oom = 0, -BETWEEN_OOMS_S
        self._trend_source = CLOCK
        self._samples = 0
        #: Bytes allocated at the last reading.
        self._allocated = 0
        #: The last snapshot of the open window.
        self._so_far = ""
        #: The last step whose figures were read.
        self._last_read = 0

    # Ways in.

    @contextmanager
    def entered(self, wait_s: float = 5.0) -> Iterator[bool]:
        """Whether the body may do its work; its errors end the recording."""
        if not self.is_on or getpid() != self.pid or not self.lock.acquire(timeout=wait_s):
            yield False
            return
        is_main = threading.get_ident() == threading.main_thread().ident
        self._depth += is_main
        try:
            yield self.is_on
        except Exception as error:
            if is_of_the_program(error):
                raise
            self.fail(error)
        finally:
            self._depth -= is_main
            self.lock.release()
        if self._dies and is_main and self._depth == 0:
            self._dies = False
            self.signals.term_now()

    def listen(self) -> None:
        """Begin to wait for steps and for CUDA; nothing is written yet."""
        self.steps_not_heard = self.steps.hook(self.torch)
        # Here, as torch is mostly imported by the main thread, and only that can set handlers.
        self.listened = self.signals.listen()
        lazily = getattr(self.torch.cuda, "_lazy_call", None)
        if lazily is not None and hasattr(self.torch._C, "_cuda_init"):
            lazily(self.cuda_began)
        self.sampler.start()
        self.collector.listen()

    def cuda_began(self) -> None:
        """CUDA was initialised: nothing has been allocated yet."""
        if getpid() != self.pid:
            if self.options.children:
                # A forked process that turned out to be a worker of its own.
                recording.begin(Options.from_text(self.options.to_text()), self.torch)
            return
        with self.entered() as may:
            if may and self.cuda is None:
                self.cuda = CudaFigures(self.torch)
                self._listen_to_ooms()
                try:
                    self.history = History(self.torch, self.options.stacks, self.options.max_entries)
                except (AttributeError, RuntimeError) as error:
                    self.note("no-history", reason=str(error))
                self.begin()
                if self.saves is not None:
                    self.saves.history = self.history
                    self.saves.describe()
                if self.windows.open is not None and self.history is not None:
                    self.history.switch_on()
                self._decide(self.moment())

    def step_ended(self) -> None:
        """A step has ended: the hot path."""
        now = self._last_step_s = monotonic()
        if now < self._next_reading or not self.is_on:
            return
        with self.entered(0.0) as may:
            if may:
                self.begin()
                self.sampler.resume()
                # Anew: to begin takes longer than many readings.
                self._read(monotonic())

    def tick(self) -> float:
        """Called by the clock; returns the seconds after which it wants to be called again."""
        with self.entered(0.0) as may:
            if not may:
                return 0.1
            now = monotonic()
            if self.directory is None:
                if self._may_begin_by_clock():
                    self.begin()
                return 0.1
            self.rss = rss_bytes()
            is_still = now - self._last_step_s > STILL_S
            if self.steps.source == CLOCK or is_still:
                self._samples += 1
                self._read(now)
            self._flush_if_due(now)
            return 1.0 if self.steps.source != CLOCK else min(1.0, 0.1 + self._samples * 0.005)
        return 1.0

    def want_window(self, reason: str = "signal") -> None:
        """Let a window be opened at the next occasion."""
        self._wanted = reason
        self._next_reading = 0.0

    def out_of_memory(self, device: int, asked: int, *rest: int) -> None:
        """The allocator could not serve a request: called while the program still holds all that it held."""
        with self.entered() as may:
            now = monotonic()
            if not may or self._ooms >= MOST_OOMS or now - self._last_oom < BETWEEN_OOMS_S:
                return
            self._ooms += 1
            self._last_oom = now
            self.begin()
            self.note("out-of-memory", device=device, asked_bytes=asked, step=self.steps.count)
            self._save(f"oom{self._ooms}")

    def allocated_now(self) -> int | None:
        """Bytes allocated on all devices; None where that cannot be told right now."""
        with self.entered(0.0) as may:
            if may and self.cuda is not None:
                return sum(self.cuda.read(device)[0] for device in self.cuda.devices)
        return None

    def collection_begins(self, look: int) -> None:
        """Python's collector is about to run, and the time before it freed memory of a device."""
        with self.entered(0.0) as may:
            if may:
                self.begin()
                self._save_holders(f"collection{look}.holders.json")

    def collection_freed(self, freed_bytes: int) -> None:
        """Python's collector has freed memory of a device, so it was cycles that held it."""
        with self.entered(0.0) as may:
            if may:
                self.notes.append(event_text("collected", {"freed_bytes": freed_bytes, "step": self.steps.count}))

    def terminated(self) -> bool:
        """SIGTERM: save what there is. False where that waits for the end of what this thread is doing for us right now."""
        if self._depth > 0:
            self._dies = True
            return False
        self.close("SIGTERM")
        return True

    def write_out(self) -> None:
        """Write what waits to be written, for somebody who wants to read it."""
        with self.entered() as may:
            if may:
                self._flush(monotonic())

    def flush_now(self) -> None:
        """SIGTERM came and must wait: write what waits to be written, from any thread."""
        with self.entered(1.0) as may:
            if may:
                self._flush(monotonic())
                self.note("ended", reason="SIGTERM while the program was in C code", steps=self.steps.count)

    def close(self, reason: str, **facts: Any) -> None:
        """The program ends: save the open window and what is not written yet."""
        self.sampler.stop()
        with self.entered() as may:
            if may and self.directory is not None:
                self._read_last()
                moment = self.moment()
                if self.windows.open is not None:
                    self._close_window(moment, reason, is_over=reason == "exit")
                elif reason == "exception":
                    self._save_holders("exception.holders.json")
                self._flush(monotonic())
                self.note("ended", reason=reason, steps=self.steps.count, source=NAMES[self.steps.source], **facts)

    def stop(self, reason: str) -> None:
        """End the recording while the program goes on."""
        self.close(reason)
        self.leave()

    def forget(self) -> None:
        """In a forked child: this process is not the one that is recorded."""
        self.is_on = False
        self.steps.unhook()
        self.signals.leave()
        self.collector.leave()
        self.lock = threading.RLock()

    def leave(self) -> None:
        """Take everything away that was put into the program."""
        self.is_on = False
        # The thread first: it waits at what the signals give back.
        for leave in (
            self.sampler.stop,
            self.steps.unhook,
            self.signals.leave,
            self.collector.leave,
            self.history.leave if self.history else None,
        ):
            try:
                if leave is not None:
                    leave()
            except Exception:
                pass

    def fail(self, error: Exception) -> None:
        """An error of ours: say so in one line, and leave the program alone from now on."""
        text = f"{type(error).__name__}: {error}"
        try:
            if self.directory is not None:
                where = error.__traceback__
                while where is not None and where.tb_next is not None:
                    where = where.tb_next
                at = f"{where.tb_frame.f_code.co_filename}:{where.tb_lineno}" if where else ""
                self.directory.event("failed", error=text, at=at)
        except Exception:
            pass
        self.leave()
        say(self.options, f"the recording has ended early ({text}); the program goes on")

    # What is done.

    def begin(self) -> None:
        """Make the directory, once there is something to record."""
        if self.directory is not None:
            return
        options = self.options
        is_launched = options.pid in (0, self.pid)
        whole = options.directory or place.new_directory(os.path.abspath(options.out), self.pid)
        options.directory = whole
        self.directory = Directory(place.part_of(whole, is_launched), options.max_disk_bytes)
        place.link_latest(whole)
        self.saves = Saves(options, self.torch, self.directory, self.started_us)
        self.saves.history = self.history
        self.saves.describe()
        self.directory.append(STATISTICS, ",".join(COLUMNS) + "\n")
        not_heard = self.steps_not_heard
        self.note("began", signals=self.listened, settings=vars(options), sources_not_heard=not_heard)
        if self.cuda is None:
            self._decide(self.moment())

    def moment(self) -> Moment:
        """Where the program is now."""
        allocated = sum(self.cuda.read(device)[0] for device in self.cuda.devices) if self.cuda else rss_bytes()
        events = self.cuda.events() if self.cuda and self.windows.open else 0
        return Moment(self.steps.total, monotonic(), events, allocated)

    def save(self, name: str) -> str | None:
        """A snapshot with holders, for the program; holders alone without CUDA. None where neither could be written."""
        with self.entered() as may:
            if may:
                self.begin()
                self._save(name)
                for kind in ("pickle", "holders.json"):
                    if self.directory is not None and f"{name}.{kind}" in self.directory.saved:
                        return self.directory.file(f"{name}.{kind}")
        return None

    def _read(self, now: float) -> None:
        steps = self.steps
        step = steps.count if steps.source != CLOCK and now - self._last_step_s <= STILL_S else None
        total = self._add_rows(step, NAMES[steps.source if step is not None else CLOCK])
        costs = COSTS if self.windows.open is None else COSTS_IN_WINDOW
        self._next_reading = now + max(LEAST_BETWEEN_S, costs * (monotonic() - now))
        self._allocated = total
        if self.cuda is not None:
            self._follow(total)
        if self.windows.open is not None or self.growth is not None or self._wanted or self.options.every_s:
            self._decide(Moment(steps.total, now, self._events_if_open(), total))
        elif self.cuda is None:
            self._look(Moment(steps.total, now, 0, total))
        self._flush_if_due(now)

    def _add_rows(self, step: int | None, source: str) -> int:
        """The figures of now, for the file. Returns the bytes that are allocated, or those of the process without CUDA."""
        time_us, total = now_us(), 0
        if step is not None:
            self._last_read = step
        if self.cuda is None:
            total = self.rss = rss_bytes()
            self.rows.append((step, time_us, None, None, self.rss, self.phase, source))
        else:
            for device in self.cuda.devices:
                figures = self.cuda.read(device)
                total += figures[0]
                self.rows.append((step, time_us, device, figures, self.rss, self.phase, source))
        return total

    def _read_last(self) -> None:
        """That there was a last step, where its figures were not read: readings leave steps out that follow fast."""
        if self.steps.source != CLOCK and self._last_read != self.steps.count:
            ended_us = now_us() - int((monotonic() - self._last_step_s) * 1e6)
            for device in self.cuda.devices if self.cuda is not None else [None]:
                self.rows.append((self.steps.count, ended_us, device, None, 0, self.phase, NAMES[self.steps.source]))

    def _follow(self, allocated: int) -> None:
        if self.steps.source != self._trend_source:
            # Another moment of the step: its floors are others.
            self._trend_source = self.steps.source
            self.trend = Trend()
        if self.trend.add(self.steps.count if self.steps.source != CLOCK else self._samples, allocated):
            self.growth = self.trend.growth()

    def _events_if_open(self) -> int:
        return self.cuda.events() if self.cuda is not None and self.windows.open is not None else 0

    def _decide(self, moment: Moment) -> None:
        windows = self.windows
        closing = windows.reason_to_close(moment)
        if closing is not None:
            self._close_window(moment, closing)
        elif windows.open is not None:
            if windows.is_time_to_save(moment):
                self._save_so_far(windows.open, moment)
            elif self.cuda is not None and windows.open.is_high(moment):
                self._save_holders(f"{windows.open.name}.high{windows.open.highs}.holders.json")
        opening = self._wanted or windows.reason_to_open(moment, self.growth)
        if opening and windows.open is None:
            self._open_window(opening, moment)
        elif self._wanted and windows.open is not None:
            self._save(f"{windows.open.name}.wanted{moment.steps}")
        self._wanted = ""

    def _open_window(self, reason: str, moment: Moment) -> None:
        if self.history is not None:
            try:
                self.history.switch_on()
            except RuntimeError as error:
                # Allocators other than torch's own keep no history.
                self.note("no-history", reason=str(error))
        window = self.windows.has_opened(reason, moment, self.growth)
        growth = self.growth._asdict() if self.growth else None
        self.note("window-opened", window=window.number, reason=reason, step=self.steps.count, growth=growth)

    def _close_window(self, moment: Moment, reason: str, is_over: bool = False) -> None:
        window = self.windows.open
        if window is None:
            return
        # What is left once the program has done its work and let go of all tells less than what is there already.
        if not (is_over and self._so_far and moment.allocated < self._allocated / 2):
            self._save(window.name)
            self._supersede(window, moment, "")
        self._so_far = ""
        if self.history is not None:
            self.history.switch_off()
        self.windows.has_closed(moment._replace(seconds=monotonic()))
        steps = moment.steps - window.start.steps
        self.note("window-closed", window=window.number, reason=reason, step=self.steps.count, steps=steps)

    def _look(self, moment: Moment) -> None:
        looks = self.looks
        if looks.is_time(moment, self.windows.last):
            looks.number += 1
            self._save_holders(f"look{looks.number}.step{self.steps.count}.holders.json")
            looks.has_looked(moment, monotonic() - moment.seconds)

    def _save_so_far(self, window: Window, moment: Moment) -> None:
        before = monotonic()
        name = f"{window.name}.step{self.steps.count}"
        self._save(name)
        window.has_saved(moment, monotonic() - before)
        self._supersede(window, moment, name)

    def _supersede(self, window: Window, moment: Moment, name: str) -> None:
        """A later snapshot of a window holds all that the one before held, unless its history has run over."""
        before, self._so_far = self._so_far, name
        if before and self.directory is not None and moment.events - window.start.events < self.options.max_entries:
            self.directory.remove(f"{before}.pickle")

    def _save(self, name: str) -> None:
        if self.saves is not None:
            self.saves.save(name, self._step())

    def _save_holders(self, name: str) -> None:
        if self.saves is not None:
            self.saves.save_holders(name, self._step())

    def _step(self) -> Step:
        steps = self.steps
        return (steps.count, NAMES[steps.source]) if steps.source != CLOCK else (None, None)

    def enter_phase(self, name: str, began: bool) -> None:
        """A named part of the program begins, or is gone back to as another one ends."""
        what, phase = ("phase-began", name) if began else ("phase-ended", self.phase)
        if self.is_on and self.directory is not None and getpid() == self.pid:
            self.notes.append(event_text(what, {"phase": phase, "step": self.steps.count}))
        self.phase = name

    def note(self, what: str, **facts: Any) -> None:
        """Write down what was done, and why."""
        if self.directory is not None:
            self.directory.event(what, **facts)

    def _flush_if_due(self, now: float) -> None:
        if now - self._last_flush >= FLUSH_S:
            self._flush(now)
            if self.cuda is not None:
                self.cuda.devices = self.cuda.in_use()

    def _flush(self, now: float) -> None:
        self._last_flush = now
        rows, self.rows = self.rows, []
        if rows and self.directory is not None:
            self.directory.append(STATISTICS, "".join(map(row_text, rows)))
        notes, self.notes = self.notes, []
        if notes and self.directory is not None:
            self.directory.append(EVENTS, "".join(notes))

    def _may_begin_by_clock(self) -> bool:
        """Whether a program that shows no steps and no CUDA is worth recording: the launched one, after a while."""
        if self.options.pid != self.pid or self.options.children:
            # It may be one that only starts others.
            return False
        # Torch is not asked: its answer would initialise the driver, after which a program must not fork.
        has_device = os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd")
        return not has_device and now_us() - self.started_us > 2_000_000

    def _listen_to_ooms(self) -> None:
        attach = getattr(self.torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:
            attach(self.out_of_memory)
