"""Torch's own history of allocations: switched on and off, and saved. A program that records it itself keeps the say."""

from __future__ import annotations

import functools
import inspect
import pickle
from typing import Any, BinaryIO


class History:
    """The history of the CUDA allocator of one process."""

    def __init__(self, torch: Any, stacks: str, max_entries: int) -> None:
        self.memory = torch.cuda.memory
        self.record = self.memory._record_memory_history
        #: Whether it is on because of us.
        self.is_on = False
        #: Whether the program has switched it on.
        self.is_programs = False
        known = inspect.signature(self.record).parameters
        wanted = {
            "enabled": "all",
            "context": None if stacks == "none" else "all",
            "stacks": "all" if stacks == "all" else "python",
            "max_entries": max_entries,
            "clear_history": True,
        }
        self.arguments = {name: value for name, value in wanted.items() if name in known}
        self._watch_the_program()

    def switch_on(self) -> None:
        """Begin a history, unless the program records one."""
        if not self.is_programs:
            self.record(**self.arguments)
            self.is_on = True

    def switch_off(self) -> None:
        """End the history that we began; what was recorded is lost then, so save it before."""
        if self.is_on and not self.is_programs:
            self.record(enabled=None)
        self.is_on = False

    def save(self, file: BinaryIO) -> None:
        """Write a snapshot: the present state and the history so far."""
        # Not by `_dump_snapshot`, whose protocol not every tool reads.
        pickle.dump(self.memory._snapshot(), file, protocol=4)

    def leave(self) -> None:
        """Switch off, and give the program its function back."""
        self.switch_off()
        if getattr(self.memory._record_memory_history, "__wrapped__", None) is self.record:
            self.memory._record_memory_history = self.record

    def _watch_the_program(self) -> None:
        record = self.record

        @functools.wraps(record)
        def record_memory_history(*args: Any, **kwargs: Any) -> Any:
            enabled = args[0] if args else kwargs.get("enabled", "all")
            self.is_programs = enabled not in (None, False)
            if not self.is_programs:
                self.is_on = False
            return record(*args, **kwargs)

        self.memory._record_memory_history = record_memory_history
