"""The fixes of ``vramscope check`` take the leaks out of the corpus's programs, and nothing else.

The program itself is fixed, and run as its twin: the CPU plays the device, and torch's `meta`, which keeps no bytes, plays the host.
So what a fix moves to the host is gone from the count, and what it leaves on the device is not. `scripts/verify_fixes` asks a GPU.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torchvision", reason="models of the programs")

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parents[1] / "corpus" / "programs"
NAMES = sorted(path.parent.name for path in PROGRAMS.glob("*/train.py"))

# What a step of a leaking program keeps: bytes before the fix, bytes after it, and whether it keeps graph before it.
LEAKS = {
    "ddp_one_rank": (64 * 32 * 4, 0, True),
    "feature_pyramid": (4 * 2 * 32 * 128 * 128 * 4, 0, True),
    "hook_store": (8971776, 0, False),
    "legacy_pt": (128 * 64 * 4, 0, False),
    "profiler_trace": (16 * 10 * 4, 0, True),
    "rnn_carry": (491520, 0, True),
    "target_masks": (4 * 4 * 256 * 256, 0, False),
    # The loss itself is kept on purpose.
    "train_loss_list": (4, 4, True),
    "val_loss_list": (16340680, 4, True),
}
# It keeps nothing from step to step, but a list on the device while it evaluates, and reads that back on the host.
EVALUATES = "clean_epochs_eval"
# Nothing to fix, or nothing that an edit could: a cycle of references, a cache that needs a bound, graphs that need a shared pool.
LEFT_ALONE = [
    "clean_resnet",
    "cuda_graph",
    "cycle_sawtooth",
    "fragmentation_varlen",
    "gpt_train",
    "lru_plateau",
    "oom_capped",
    "streams_record",
]
# On a CPU these would take long: their widths are divided by 16.
WIDE = {"clean_epochs_eval", "ddp_one_rank", "legacy_pt"}
LEAKING_RANK = {"ddp_one_rank": "train.1.json"}


def unmarked(name):
    """The program without the comments that tell where it leaks."""
    return re.sub(r"  # (LEAK|ALLOC).*", "", (PROGRAMS / name / "train.py").read_text(encoding="utf-8"))


def twin(name, source):
    """What runs in place of a program."""
    if name != EVALUATES:
        source = source.replace(".cpu()", '.to("meta")')
    for on_device, on_cpu in [
        (".cuda()", ".cpu()"),
        ('"cuda"', '"cpu"'),
        ("torch.cuda.set_device(rank)", ""),
        ('"nccl"', '"gloo"'),
        # Memory that comes from another process was made by no operator here.
        ("num_workers=2", "num_workers=0"),
    ]:
        source = source.replace(on_device, on_cpu)
    if name in WIDE:
        source = re.sub(r"\b(512|1024|2048|4096)\b", lambda width: str(int(width[0]) // 16), source)
    return source


def write(directory, texts):
    for name, text in texts.items():
        path = directory / name / "train.py"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    return directory


def fix(directory):
    """The texts of the programs in a directory after a fix."""
    words = ["check", "--quiet", "--fix", "--unsafe-fixes", str(directory)]
    ended = subprocess.run([sys.executable, "-m", "vramscope", *words], check=False, capture_output=True, text=True)
    # 1: some findings have no fix.
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return {name: (directory / name / "train.py").read_text(encoding="utf-8") for name in NAMES}


@pytest.fixture(scope="module")
def fixed(tmp_path_factory):
    return fix(write(tmp_path_factory.mktemp("programs"), {name: unmarked(name) for name in NAMES}))


@pytest.fixture(scope="module")
def kept(tmp_path_factory, fixed):
    """Runs the twins of all programs that a fix changes; gives, by name, what they hold after each step: before and after it."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    directories, runs = [], []
    for kind, text in (("before", unmarked), ("after", fixed.get)):
        texts = {name: twin(name, text(name)) for name in [*LEAKS, EVALUATES]}
        directory = write(tmp_path_factory.mktemp(kind), texts)
        command = [sys.executable, str(HERE / "twin_programs.py"), *(str(directory / name / "train.py") for name in texts)]
        directories.append(directory)
        runs.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    errors = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], "\n".join(errors)
    return {
        name: [json.loads((directory / name / LEAKING_RANK.get(name, "train.json")).read_text()) for directory in directories]
        for name in [*LEAKS, EVALUATES]
    }


def growth(rows):
    """How many bytes and graph nodes each step of the second half adds, which is the same for all."""
    late = rows[len(rows) // 2 - 1 :]
    ((size, nodes),) = {(now[0] - before[0], now[1] - before[1]) for before, now in zip(late, late[1:])}
    return size, nodes


def test_programs_without_a_fix_stay_as_they_are(fixed):
    assert sorted([*LEAKS, EVALUATES, *LEFT_ALONE]) == NAMES
    assert [name for name in NAMES if fixed[name] == unmarked(name)] == LEFT_ALONE


def test_one_fix_is_enough(tmp_path, fixed):
    assert fix(write(tmp_path, fixed)) == fixed


@pytest.mark.parametrize("name", LEAKS)
def test_a_fix_takes_the_leak_out(kept, name):
    leaks, stays, graph = LEAKS[name]
    before, after = kept[name]
    size, nodes = growth(before)
    assert (size, nodes > 0) == (leaks, graph)
    assert growth(after) == (stays, 0)
    assert len(before) == len(after) >= 6


def test_a_clean_program_runs_on_after_a_fix(kept):
    assert [growth(rows) for rows in kept[EVALUATES]] == [(0, 0), (0, 0)]
