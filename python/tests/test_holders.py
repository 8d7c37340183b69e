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

from holding_programs import PROGRAMS

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


LEAKS = [name for name, truth in TRUTH.items() if truth["holder"] and "holders" not in truth]


@pytest.mark.parametrize("name", LEAKS)
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
def test_two_that_hold_the_same_are_both_known(name: str, answers: Path) -> None:
    truth, answer = TRUTH[name], answer_of(answers, name)
    top = next(row for row in answer["holders"] if row["class"] not in PLAIN)
    assert top["path"] in [held["holder"] if isinstance(held, dict) else held for held in truth["holders"]]
    # Neither would free it alone.
    assert top["exclusive_bytes"] < top["bytes"] / 10


@pytest.mark.parametrize("name", [name for name, truth in TRUTH.items() if "classes" in truth])
def test_classes_of_clean_programs(name: str, answers: Path) -> None:
    want, got = TRUTH[name]["classes"], answer_of(answers, name)["classes"]
    off = {
        what: (got[what], want.get(what, 0))
        for what in got
        if abs(got[what] - want.get(what, 0)) > max(TOLERANCE_BYTES, TOLERANCE_SHARE * want.get(what, 0))
    }
    assert not off
