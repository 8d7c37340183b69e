"""The command line: ``vramscope …`` and ``python -m vramscope …``."""

from __future__ import annotations

import sys

from vramscope import _native


def main() -> int:
    """Run the command as it was typed, and return its exit status."""
    words = ["vramscope", *sys.argv[1:]]
    asked = _native.parse_run(words)
    if asked is None:
        return _native.main(words)
    from vramscope.launcher import launch

    module, program, out, settings = asked
    return launch(module, program, out, settings)


if __name__ == "__main__":
    sys.exit(main())
