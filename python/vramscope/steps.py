"""What a step of the program is: counted by the best source that shows itself.

Nothing here stands between the program and torch while they work: hooks are called after the fact or before it, so that no
frame of ours is in a traceback, and none keeps an object of the program.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Callable

#: Sources by rank: a better one takes over from a worse one, and its steps are counted from 1.
CLOCK, BACKWARD, LOADER, OPTIMIZER, EXPLICIT = range(5)
NAMES = ("clock", "backward", "loader", "optimizer", "explicit")

#: An optimizer that has not stepped while another has so often is done.
DONE_AFTER = 64


class Steps:
    """Counts steps and tells when one has ended."""

    def __init__(self, ended: Callable[[], None]) -> None:
        self.ended = ended
        self.source = CLOCK
        #: Steps by the present source.
        self.count = 0
        #: Steps by any source.
        self.total = 0
        self._hooks: list[tuple[int, Callable[[], None]]] = []

    def seen(self, source: int) -> None:
        """A source says that a step has ended."""
        if source != self.source:
            if source < self.source:
                return
            self.source, self.count = source, 0
            self._unhook(lambda rank: rank < min(source, OPTIMIZER))
        self.count += 1
        self.total += 1
        self.ended()

    def explicit(self) -> None:
        """The program says that a step has ended."""
        self.seen(EXPLICIT)

    def hook(self, torch: Any) -> list[str]:
        """Listen to all sources that torch has. Returns what could not be listened to, and why."""
        problems = []
        for source, listen in ((OPTIMIZER, _listen_to_optimizers), (LOADER, _listen_to_loaders), (BACKWARD, _listen_to_backward)):
            try:
                self._hooks.append((source, listen(torch, self)))
            except Exception as error:
                problems.append(f"{NAMES[source]}: {type(error).__name__}: {error}")
        return problems

    def unhook(self) -> None:
        """Listen to nothing any more."""
        self._unhook(lambda _: True)

    def _unhook(self, which: Callable[[int], bool]) -> None:
        for rank, remove in self._hooks:
            if which(rank):
                remove()
        self._hooks = [(rank, remove) for rank, remove in self._hooks if not which(rank)]


class Rounds:
    """Of several optimizers that step in turn, the first one makes the round; a new one if that is done."""

    def __init__(self) -> None:
        self.first = 0
        self._others = 0

    def ends(self, optimizer: int) -> bool:
        """Whether the step of this optimizer ends a round."""
        if optimizer != self.first:
            self._others += 1
            if self.first and self._others < DONE_AFTER:
                return False
            self.first = optimizer
        self._others = 0
        return True


def _listen_to_optimizers(torch: Any, steps: Steps) -> Callable[[], None]:
    rounds = Rounds()
    is_compiling = _is_compiling(torch)

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            # What is compiled goes without us.
            return
        if steps.source <= OPTIMIZER and rounds.ends(id(optimizer)):
            steps.seen(OPTIMIZER)

    # Not an attribute of `torch.optim` in every release.
    optimizers = sys.modules["torch.optim.optimizer"]
    handle = optimizers.register_optimizer_step_post_hook(after_step)
    return handle.remove  # type: ignore[no-any-return]


def _listen_to_loaders(torch: Any, steps: Steps) -> Callable[[], None]:
    """A loader's iterator counts the batches that it has handed out; that count is watched."""
    kind: Any = sys.modules["torch.utils.data.dataloader"]._BaseDataLoaderIter
    before = kind.__dict__.get("_num_yielded")
    kind._num_yielded = Counted(steps)

    def remove() -> None:
        if before is None:
            del kind._num_yielded
        else:
            kind._num_yielded = before

    return remove


class Counted:
    """An attribute that is kept where it would be, and that tells of each batch of the outermost loader."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        #: Iterators that have handed out batches and are still there, the outermost first.
        self.running: list[weakref.ref[Any]] = []

    def __get__(self, iterator: Any, kind: Any = None) -> Any:
        if iterator is None:
            return self
        try:
            return iterator.__dict__["_num_yielded"]
        except KeyError:
            raise AttributeError("_num_yielded") from None

    def __set__(self, iterator: Any, count: int) -> None:
        iterator.__dict__["_num_yielded"] = count
        if self.steps.source <= LOADER and count > 0:
            if count == 1:
                # A new round of the same loader is the end of its last one.
                data = _data_of(iterator)
                others = [ref for ref in self.running if ref() is not None and _data_of(ref()) is not data]
                self.running = [*others, weakref.ref(iterator)]
            while self.running and self.running[0]() is None:
                self.running.pop(0)
            if not self.running or self.running[0]() is iterator:
                self.steps.seen(LOADER)


def _data_of(iterator: Any) -> Any:
    try:
        return getattr(iterator, "_dataset", None)
    except Exception:
        # A class of the program's may do as it likes.
        return None


def _listen_to_backward(torch: Any, steps: Steps) -> Callable[[], None]:
    """The engine is taken from a class each time gradients are computed; that is when a backward pass begins."""
    meta = type(torch.autograd.Variable)
    engine = torch.autograd.Variable._execution_engine
    is_compiling = _is_compiling(torch)

    def taken(_: Any) -> Any:
        if not is_compiling() and steps.source <= BACKWARD:
            steps.seen(BACKWARD)
        return engine

    def given(variable: Any, other: Any) -> None:
        # The program has an engine of its own.
        remove()
        type.__setattr__(variable, "_execution_engine", other)

    def remove() -> None:
        if "_execution_engine" in meta.__dict__:
            del meta._execution_engine

    meta._execution_engine = property(taken, given)

    return remove


def _is_compiling(torch: Any) -> Callable[[], bool]:
    compiler = getattr(torch, "compiler", None)
    return getattr(compiler, "is_compiling", None) or (lambda: False)
