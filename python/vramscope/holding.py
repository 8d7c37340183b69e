"""Who holds the memory: the native walk through the heap, as the recorder asks for it.

The only place that knows how it is called. What it says is a document of the schema ``vramscope.holders/1``.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vramscope._native import Holders

#: Objects that the program said should be gone, and why.
_watched: list[tuple[weakref.ref[Any], str]] = []


def watch(thing: object, reason: str) -> None:
    """Remember an object that should be gone by now, without keeping it."""
    _watched[:] = [(ref, why) for ref, why in _watched if ref() is not None]
    _watched.append((weakref.ref(thing), reason))


def watched() -> list[tuple[int, str]]:
    """Addresses of such objects that are still there, and why they should not be."""
    return [(id(thing), reason) for thing, reason in ((ref(), reason) for ref, reason in _watched) if thing is not None]


def find(min_bytes: int = 0, device: Any = None) -> Holders:
    """Walk the heap of this process."""
    from vramscope import _native

    return _native.holders(min_bytes, device, watched())
