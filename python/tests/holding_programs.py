"""Runs programs of corpus/holders, each in a process of its own, and writes down who holds their memory when they ask.

    python holding_programs.py DIRECTORY NAME...

For each program ``DIRECTORY/NAME.json`` has the answer and ``DIRECTORY/NAME.status`` its exit status. Then the reference that
the truth names is cut, and ``DIRECTORY/NAME.freed`` has the bytes of tensors that became free by that.
torch is imported once for all.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import sys
import types
from pathlib import Path

import torch
import vramscope

HOLDERS = Path(__file__).resolve().parents[2] / "corpus" / "holders"
PROGRAMS = HOLDERS / "programs"
TRUTH = json.loads((HOLDERS / "truth.json").read_text(encoding="utf-8"))
sys.path.append(str(HOLDERS))
import selfcheck


def run(program: Path, output: Path) -> None:
    """Runs one program as ``__main__``."""

    def check() -> None:
        device = os.environ.get("DEVICE", "cpu")
        answer = vramscope.holders(device=device)
        output.write_text(answer.to_json(), encoding="utf-8")
        holder = TRUTH[program.stem]["holder"]
        if holder is not None and selfcheck.cut(program.stem, holder):
            freed = answer.total_bytes - vramscope.holders(device=device).total_bytes
            output.with_suffix(".freed").write_text(str(freed), encoding="utf-8")
            # Without the reference the program cannot go on.
            os._exit(0)

    builtins.vramscope_check = check
    sys.argv = [str(program)]
    sys.path[0] = str(program.parent)
    main = types.ModuleType("__main__")
    main.__file__ = str(program)
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    exec(compile(program.read_text(encoding="utf-8"), str(program), "exec"), main.__dict__)


def main() -> None:
    directory = Path(sys.argv[1])
    # Learns what torch's objects look like once, not in each program.
    vramscope.holders(device="cpu")
    for name in sys.argv[2:]:
        process = os.fork()
        if process == 0:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            status = 0
            # Chance would have it that the collector runs just before the program asks.
            gc.disable()
            try:
                run(PROGRAMS / f"{name}.py", directory / f"{name}.json")
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                status = 1
            os._exit(status)
        _, status = os.waitpid(process, 0)
        (directory / f"{name}.status").write_text(str(status), encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
