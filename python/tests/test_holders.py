"""Programs whose holders are known, as corpus/holders/README.md tells."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from holding_programs import PROGRAMS, selfcheck

TRUTH: dict[str, Any] = json.loads((PROGRAMS.parent / "truth.json").read_text(encoding="utf-8"))
#: What a model needs anyway is no leak, unless that is what is asked for.
PLAIN = {"parameters", "gradients", "optimizer_state", "buffers", "pending"}
#: Bytes that a figure of a class may be off where the program says so only in part.
TOLERANCE_BYTES, TOLERANCE_SHARE = 64 << 10, 0.01


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("holders")
    script = Path(__file__).with_name("holding_programs.py")
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, str(script), str(directory), *TRUTH], check=True, env=env, stderr=subprocess.DEVNULL)
    return directory


def answer_of(answers: Path, name: str) -> dict[str, Any]:
    assert (answers / f"{name}.status").read_text() == "0", "the program failed"
    answer: dict[str, Any] = json.loads((answers / f"{name}.json").read_text(encoding="utf-8"))
    assert sum(answer["classes"].values()) == answer["total_bytes"]
    assert sum(row["bytes"] for row in answer["holders"]) == answer["total_bytes"]
    return answer


def is_named(row: dict[str, Any], truth: dict[str, Any]) -> bool:
    path = row["path"]
    named = path == truth["holder"] or path in truth.get("also", ())
    return named or ("match" in truth and re.fullmatch(truth["match"], path) is not None)


#: What is not right yet, and why: it must fail, so that nobody forgets to take it out of here.
NOT_YET = {}
if sys.version_info < (3, 11):
    of_ended = "before Python 3.11, a frame that has ended is not told from one that waits, and reads `function:local`"
    NOT_YET.update(dict.fromkeys(["errors_list", "except_handler", "sys_last_value"], of_ended))

LEAKS = [name for name, truth in TRUTH.items() if truth["holder"] and "holders" not in truth]


def leak(name: str) -> Any:
    marks = [pytest.mark.xfail(strict=True, reason=NOT_YET[name])] if name in NOT_YET else []
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [leak(name) for name in LEAKS])
def test_the_holder_is_named(name: str, answers: Path) -> None:
    truth, answer = TRUTH[name], answer_of(answers, name)
    classes = {truth["class"], *([truth["also_class"]] if isinstance(truth.get("also_class"), str) else truth.get("also_class", ()))}
    # Workspaces of libraries have no storage, on CUDA.
    rows = [row for row in answer["holders"] if row["class"] not in PLAIN | {"cpp_held"} or row["class"] in classes]
    assert rows
    top = rows[0]
    shown = [(row["path"], row["through"], row["class"], row["bytes"]) for row in rows[:4]]
    assert is_named(top, truth), (truth["holder"], shown)
    assert top["class"] in classes, (truth["class"], shown)
    assert truth.get("also_through") or top["through"] == truth["through"], (truth["through"], shown)
    for path in truth.get("never", ()):
        assert not any(row["path"].startswith(path) for row in answer["holders"])


@pytest.mark.parametrize("name", [name for name, truth in TRUTH.items() if "holders" in truth])
def test_what_two_hold_is_exclusive_to_neither(name: str, answers: Path) -> None:
    truth, rows = TRUTH[name], answer_of(answers, name)["holders"]
    bytes_of = {row["path"]: row for row in rows if row["bytes"] > TOLERANCE_BYTES}
    named = [held for held in truth["holders"] if held["path"] in bytes_of]
    assert named
    for held in named:
        if "exclusive_bytes" in held:
            # Each block is one row's only; giving up that one alone would free nothing.
            assert bytes_of[held["path"]]["exclusive_bytes"] == held["exclusive_bytes"]
    if not any("exclusive_bytes" in held for held in truth["holders"]):
        assert len(named) == len(truth["holders"])


@pytest.mark.parametrize("name", [name for name, truth in TRUTH.items() if "classes" in truth])
def test_classes_of_clean_programs(name: str, answers: Path) -> None:
    want, got = TRUTH[name]["classes"], answer_of(answers, name)["classes"]
    off = {
        what: (got[what], want.get(what, 0))
        for what in got
        if abs(got[what] - want.get(what, 0)) > max(TOLERANCE_BYTES, TOLERANCE_SHARE * want.get(what, 0))
    }
    assert not off


#: Where the cut of the truth is more than one row's path: two that hold the same, or parts that are named one by one.
CUT_MORE = {name for name, truth in TRUTH.items() if "holders" in truth} | {"rnn_carry", "two_graph_and_list", "two_views_one_storage"}


def is_cut(name: str) -> bool:
    """Whether the cut of the truth can be made here, and what it frees be known."""
    holder = TRUTH[name]["holder"]
    if holder is None or name in CUT_MORE or selfcheck.CUTS.get(name, "") is None:
        return False
    if sys.version_info >= (3, 14):
        # A frame keeps what is overwritten in it from outside.
        return re.fullmatch(r"\w+:\w+", holder) is None
    # Before 3.11 it is not known which temporaries of a frame are still there, so that one may count as a second holder.
    return sys.version_info >= (3, 11) or not (name in NOT_YET or name.startswith("running_total"))


CUT = [name for name in TRUTH if is_cut(name)]


@pytest.mark.parametrize("name", CUT)
def test_what_fixing_frees_is_what_the_cut_freed(name: str, answers: Path) -> None:
    truth, freed_bytes = TRUTH[name], int((answers / f"{name}.freed").read_text())
    rows = [row for row in answer_of(answers, name)["holders"] if is_named(row, truth)]
    # The last item is often held by a variable too, which is cut with the truth's reference or not.
    item = max((row["bytes"] // row["blocks"] for row in rows), default=0)
    promised = [row["exclusive_bytes"] for row in rows]
    assert any(abs(bytes_ - freed_bytes) <= item + TOLERANCE_BYTES for bytes_ in promised), (freed_bytes, promised)
