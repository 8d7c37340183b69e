"""Bytes as people write them, read and written."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS = {"b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


def parse_bytes(amount: str | int) -> int:
    """Bytes from ``"2 GiB"``, ``"500MB"`` or a whole number of bytes.

    Raises:
        ValueError: where the unit is missing or unknown: a bare number in a text may be meant in any unit.
        TypeError: where it is neither a text nor a whole number.
    """
    if isinstance(amount, bool) or not isinstance(amount, (int, str)):
        raise TypeError(f"{amount!r} is no amount of memory; write it as `2 GiB` or `500 MB`")
    if isinstance(amount, int):
        if amount < 0:
            raise ValueError(f"a number of bytes cannot be negative: {amount}")
        return amount
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*", amount)
    unit = _UNITS.get(found.group(2).lower()) if found else None
    if found is None or unit is None:
        raise ValueError(f"`{amount}` is no amount of memory; write it as `2 GiB` or `500 MB`")
    return round(Fraction(found.group(1)) * unit)


def format_bytes(count: int) -> str:
    """Bytes with the largest unit of which there is at least one: ``16.0 MiB``."""
    size = float(abs(count))
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    sign = "-" if count < 0 else ""
    return f"{sign}{int(size)} B" if unit == "B" else f"{sign}{size:.1f} {unit}"
