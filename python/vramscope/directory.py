"""The files of one recording: written so that what was written stays, whatever happens next."""

from __future__ import annotations

import contextlib
import json
import os
from os import getpid
from time import time_ns
from typing import Any, BinaryIO, Callable

STATISTICS = "statistics.csv"
EVENTS = "events.jsonl"
ENVIRONMENT = "environment.json"


class Directory:
    """A directory that only this process writes to.

    No file is kept open: a program that closes or reuses descriptors cannot make us write into its own files.
    """

    def __init__(self, path: str, max_bytes: int) -> None:
        self.path = os.path.abspath(path)
        self.max_bytes = max_bytes
        #: Bytes of each saved file, in the order in which they were saved.
        self.saved: dict[str, int] = {}
        os.makedirs(self.path, exist_ok=True)

    def file(self, name: str) -> str:
        """The path of a file in it."""
        return os.path.join(self.path, name)

    def append(self, name: str, text: str) -> None:
        """Put lines at the end of a file."""
        descriptor = os.open(self.file(name), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            rest = text.encode()
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)

    def event(self, what: str, **facts: Any) -> None:
        """Note what the recorder did, and why."""
        self.append(EVENTS, event_text(what, facts))

    def save(self, name: str, write: Callable[[BinaryIO], None]) -> str:
        """Write a whole file or none."""
        path, new = self.file(name), self.file(f".{name}.{getpid()}")
        try:
            with open(new, "wb") as file:
                write(file)
            self.saved[name] = os.stat(new).st_size
            os.replace(new, path)
        except BaseException:
            _remove(new)
            raise
        return path

    def save_json(self, name: str, content: Any) -> str:
        """Write a JSON document."""
        return self.save(name, lambda file: _write_all(file, json.dumps(content, indent=1, default=str) + "\n"))

    def remove(self, name: str) -> None:
        """Remove a saved file."""
        if self.saved.pop(name, None) is not None:
            _remove(self.file(name))

    def make_room(self) -> list[str]:
        """Drop saved files until the rest has room, those of the windows in the middle first. Returns what was dropped."""
        dropped = []
        while sum(self.saved.values()) > self.max_bytes:
            name = expendable(list(self.saved))
            if name is None:
                break
            self.remove(name)
            dropped.append(name)
        if dropped:
            self.event("dropped", files=dropped, max_disk_bytes=self.max_bytes)
        return dropped


def event_text(what: str, facts: dict[str, Any]) -> str:
    """A line of the events, as of now."""
    return json.dumps({"time_us": time_ns() // 1000, "event": what, **facts}, default=str) + "\n"


def expendable(names: list[str]) -> str | None:
    """Which of these files, in the order in which they were saved, is missed least.

    The first and the last window say most about the run; between them the oldest one goes, its snapshots before its holders
    as they are larger by far. Of the first and the last, what was saved while they lasted may go.
    """

    def window(name: str) -> str:
        return name.split(".", 1)[0]

    windows = list(dict.fromkeys(map(window, names)))
    middle = windows[1:-1]
    for kind in (".pickle", ".json"):
        found = next((name for name in names if window(name) in middle and name.endswith(kind)), None)
        if found:
            return found
    return next((name for name in names if name.count(".") > 1 and name.endswith(".pickle")), None)


def _write_all(file: BinaryIO, text: str) -> None:
    file.write(text.encode())


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.remove(path)
