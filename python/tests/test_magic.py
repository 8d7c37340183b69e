"""``%%vramscope`` in IPython, with cells as they would be typed."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from recorded import environment

pytest.importorskip("IPython", reason="python/tests/requirements.txt has it for Python 3.11 and later")
pytest.importorskip("torch")

#: Runs cells, and says of each what it printed and how it ended.
NOTEBOOK = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

shell = InteractiveShell.instance(colors="NoColor")
answers = []
for cell in json.load(sys.stdin):
    with capture_output(display=False) as captured:
        result = shell.run_cell(cell, store_history=True)
    error = result.error_before_exec or result.error_in_exec
    answers.append([captured.stdout + captured.stderr, type(error).__name__ if error else "", shell.execution_count])
print(json.dumps(answers))
"""

CELLS = {
    "load": "%load_ext vramscope",
    "before torch": "%%vramscope\na = 1",
    "imports torch": "%%vramscope\nimport torch\nfirst = torch.zeros(1 << 18)",
    "last value": "%%vramscope\nkept = [torch.zeros(1 << 18) for _ in range(3)]\nlen(kept)",
    "replaced": "%%vramscope\nkept = kept[:1]",
    "many": "%%vramscope\n" + "\n".join(f"x{i} = torch.zeros({1000 * (i + 1)})" for i in range(7)),
    "graph": "%%vramscope\nloss = (torch.ones(1 << 18, requires_grad=True) * 2).relu().sum()",
    "cycle": "%%vramscope\nimport gc\ngc.disable()\nring = [torch.zeros(1 << 18)]\nring.append(ring)\ndel ring",
    "failed": "%%vramscope\nbefore = torch.zeros(1 << 18)\n1 / 0",
    "traceback": "%tb",
    "syntax": "%%vramscope\nx = (",
    "exit": "%%vramscope\nimport sys\nsys.exit(3)",
    "words": "%%vramscope --top 5\nwords = 1",
    "holders": "%vramscope",
    "holders of what": "%vramscope cuda:0",
    "magics inside": "%%vramscope\n%%capture\nprint('hidden')",
    "output": "Out",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    directory = tmp_path_factory.mktemp("notebook")
    env = {**environment(fake=False), "IPYTHONDIR": str(directory), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", NOTEBOOK]
    ended = subprocess.run(
        command, input=json.dumps(list(CELLS.values())), capture_output=True, text=True, env=env, cwd=directory, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return dict(zip(CELLS, json.loads(ended.stdout)))


def lines(text):
    return [line for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("load", []),
        ("before torch", ["vramscope: nothing to measure, as nothing has imported torch"]),
        ("imports torch", ["cpu: 1.0 MiB live, +1.0 MiB by this cell", "      +1.0 MiB  __main__.first"]),
        ("last value", ["Out[4]: 3", "cpu: 4.0 MiB live, +3.0 MiB by this cell", "      +3.0 MiB  __main__.kept[*]"]),
        ("replaced", ["cpu: 2.0 MiB live, -2.0 MiB by this cell"]),
        (
            "many",
            [
                "cpu: 2.1 MiB live, +109.4 KiB by this cell",
                *(f"{f'+{size} KiB':>14}  __main__.x{i}" for i, size in ((6, "27.3"), (5, "23.4"), (4, "19.5"), (3, "15.6"), (2, "11.7"))),
                "     +11.7 KiB  2 more (%vramscope shows all holders)",
            ],
        ),
        ("words", ["UsageError: %%vramscope takes no words on its line: `--top 5`"]),
        ("holders of what", ["UsageError: %vramscope takes no words on its line: `cuda:0`"]),
    ],
)
def test_what_is_said(notebook, cell, said):
    assert lines(notebook[cell][0]) == said


def test_what_hangs_on_a_graph_or_in_a_cycle_is_named_so(notebook):
    assert "__main__.loss through the autograd graph" in notebook["graph"][0]
    assert lines(notebook["cycle"][0])[1].split("  ")[-1].startswith("unreachable: list")


def test_a_cell_that_fails_is_shown_once_and_stops_the_notebook(notebook):
    text, error, _ = notebook["failed"]
    assert error == "ZeroDivisionError"
    assert text.count("ZeroDivisionError: division by zero") == 1
    assert lines(text)[-2].endswith(" MiB live, +1.0 MiB by this cell") and lines(text)[-1] == "      +1.0 MiB  __main__.before"
    # Afterwards it can be looked at, without a line of ours.
    again = notebook["traceback"][0]
    assert "1 / 0" in again and "magic.py" not in again


@pytest.mark.parametrize(("cell", "shown"), [("syntax", "SyntaxError: "), ("exit", "SystemExit: 3")])
def test_what_ipython_shows_in_its_own_way_is_shown_once(notebook, cell, shown):
    text, error, _ = notebook[cell]
    assert error == "CellFailed" and text.count(shown) == 1 and "run_cell" not in text


def test_the_line_magic_shows_all_holders(notebook):
    text, error, _ = notebook["holders"]
    assert not error and text.startswith("HELD  ") and "__main__.kept[*]" in text


def test_cells_are_counted_and_kept_as_without(notebook):
    assert [count for _, _, count in notebook.values()] == list(range(2, 2 + len(CELLS)))
    assert not notebook["magics inside"][1] and "hidden" not in notebook["magics inside"][0]
    assert lines(notebook["output"][0]) == ["Out[17]: {4: 3}"]
