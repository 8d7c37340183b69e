"""The native part of vramscope."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Callable

def main(arguments: Sequence[str | bytes | PathLike[str]]) -> int:
    """Run the command line with these arguments, the command's own name first, and return its exit status."""

def parse_run(arguments: list[str]) -> tuple[bool, list[str], str, list[tuple[str, str]]] | None:
    """What ``vramscope run`` was asked for; None where another command was typed, or a wrong one."""

def deferring(function: Callable[..., Any], is_program: Callable[[BaseException], bool], fork: str | None = None) -> Callable[..., None]:
    """A function that does what ``function`` does; what the program's handlers raise in it is raised in the program after it."""

def holders(min_bytes: int = 0, device: Any = None, watched: list[tuple[int, str]] = ...) -> Holders:
    """Who holds the memory of tensors; see :func:`vramscope.holders`."""

class Holders:
    """Who holds the memory of tensors, at the moment when it was asked. Prints as text."""

    @property
    def total_bytes(self) -> int:
        """Bytes of all live blocks."""
    @property
    def unexplained_bytes(self) -> int:
        """Bytes of blocks of which nothing is known."""
    def to_dict(self) -> dict[str, Any]:
        """Plain data of the schema ``vramscope.holders/1``. Sizes are in bytes."""
    def to_json(self, compact: bool = False) -> str:
        """The same as JSON."""
    def text(self, top: int = 10, width: int = 100, colour: bool = False, verbose: bool = False) -> str:
        """The same for reading: at most ``top`` holders, ``width`` columns wide."""
