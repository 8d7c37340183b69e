"""Runs a program of corpus/holders and writes down who holds its memory at the moment that it chooses.

    python holding_programs.py PROGRAM OUTPUT
"""

from __future__ import annotations

import builtins
import os
import runpy
import sys

import vramscope


def main() -> None:
    program, output = sys.argv[1:3]
    with open(output, "w", encoding="utf-8") as file:
        pass

    def check() -> None:
        document = vramscope.holders(device=os.environ.get("DEVICE", "cpu")).to_json()
        with open(output, "w", encoding="utf-8") as file:
            file.write(document)

    builtins.vramscope_check = check  # type: ignore[attr-defined]
    sys.argv = [program]
    sys.path[0] = os.path.dirname(program)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
