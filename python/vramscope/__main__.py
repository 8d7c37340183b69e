"""The command line: ``vramscope …`` and ``python -m vramscope …``."""

from __future__ import annotations

import sys

from vramscope import _native


def main() -> int:
    """Run the command as it was typed, and return its exit status."""
    return _native.main(["vramscope", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
