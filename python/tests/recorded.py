"""Runs programs with and without the recorder, for the tests of ``vramscope run``."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import vramscope

HERE = Path(__file__).resolve().parent
FAKE = HERE / "fake"
PACKAGE = Path(vramscope.__file__).resolve().parents[1]


def environment(fake: bool = True, **more: str) -> dict[str, str]:
    """The environment of a program: a torch with a make-believe device, or the installed one."""
    cleared = ("VRAMSCOPE_", "RANK", "WORLD_SIZE", "PYTHONPATH", "PYTHONWARNINGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(cleared)}
    # The make-believe torch first, as the package may lie beside a real one.
    paths = [*([str(FAKE)] if fake else []), str(PACKAGE)]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), **more}


class Ended:
    """How a program ended."""

    def __init__(self, process: subprocess.CompletedProcess[bytes]) -> None:
        self.status = process.returncode
        self.out = process.stdout
        self.err = process.stderr.decode()

    @property
    def own_err(self) -> str:
        """What the program itself wrote on the standard error: ours comes last."""
        before, found, _ = self.err.partition("\nvramscope: ")
        return before + "\n" if found else ("" if self.err.startswith("vramscope: ") else self.err)


class Programs:
    """Programs in a directory."""

    def __init__(self, directory: Path, fake: bool = True) -> None:
        self.directory = directory
        self.env = environment(fake)
        self.preexec: Any = None

    def write(self, text: str, name: str = "train.py") -> str:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return name

    def python(self, *words: str, **more: Any) -> Ended:
        """`python WORDS` in the directory."""
        command = [sys.executable, *words]
        settings: dict[str, Any] = {"cwd": self.directory, "env": self.env, "capture_output": True, "timeout": 120}
        settings.update(preexec_fn=self.preexec, **more)
        return Ended(subprocess.run(command, check=False, **settings))

    def plain(self, *words: str, flags: tuple[str, ...] = (), **more: Any) -> Ended:
        return self.python(*flags, *words, **more)

    def recorded(self, *words: str, flags: tuple[str, ...] = (), options: tuple[str, ...] = (), **more: Any) -> Ended:
        return self.python(*flags, "-m", "vramscope", "run", *options, *words, **more)

    def same(self, *words: str, flags: tuple[str, ...] = (), options: tuple[str, ...] = (), **more: Any) -> Ended:
        """Runs it both ways, and expects to see no difference."""
        want = self.plain(*words, flags=flags, **more)
        got = self.recorded(*words, flags=flags, options=("--quiet", *options), **more)
        assert got.err == want.err
        assert got.out.decode() == want.out.decode()
        assert got.status == want.status
        return got

    def start(self, *words: str, options: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        """A recorded program that runs on; its standard output can be read."""
        command = [sys.executable, "-m", "vramscope", "run", *options, *words]
        return subprocess.Popen(command, cwd=self.directory, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    # What was recorded.

    @property
    def recording(self) -> Path:
        return (self.directory / ".vramscope" / "latest").resolve()

    def files(self, part: str = "") -> list[str]:
        """Names of the files of the newest recording, hidden ones too."""
        return sorted(os.listdir(self.recording / part))

    def events(self, part: str = "") -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.recording / part / "events.jsonl").read_text().splitlines()]

    def rows(self, part: str = "") -> list[dict[str, str]]:
        with open(self.recording / part / "statistics.csv", newline="") as file:
            return list(csv.DictReader(file))


def wait_for(process: subprocess.Popen[bytes], word: bytes) -> None:
    """Read its output until a line holds the word."""
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return
    raise AssertionError(f"{word!r} was not written: {process.stderr.read() if process.stderr else ''!r}")


def died_of(number: signal.Signals) -> int:
    return -int(number)
