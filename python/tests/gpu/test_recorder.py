"""The recorder on a real device: `python -m pytest python/tests/gpu`. Where there is none, nothing here can be tested."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
pytest.register_assert_rewrite("recorded")
torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from recorded import Programs, wait_for

TRAIN = """
import os, sys, time, torch
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept = []
def train(step):
    optimizer.zero_grad()
    loss = model(torch.randn(64, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    return loss
"""


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path, fake=False)


def write(programs, body):
    (programs.directory / "train.py").write_text(TRAIN + body)


def windows(programs):
    return [event["reason"] for event in programs.events() if event["event"] == "window-opened"]


def test_a_leak_from_the_start(programs):
    write(programs, "for step in range(100):\n    kept.append(train(step) * torch.ones(1 << 18, device='cuda'))\n")
    got = programs.recorded("train.py")
    assert got.status == 0
    assert "LEAK" in got.err or "GROWING" in got.err
    assert "window1.pickle" in programs.files()
    assert json.loads((programs.recording / "environment.json").read_text())["driver"]


def test_a_leak_that_begins_late(programs):
    write(
        programs, "for step in range(1200):\n    train(step)\n    if step > 400:\n        kept.append(torch.ones(1 << 18, device='cuda'))\n"
    )
    got = programs.recorded("train.py")
    assert windows(programs)[:2] == ["first", "growth"]
    assert "LEAK" in got.err or "GROWING" in got.err


def test_a_clean_program(programs):
    write(programs, "for step in range(1000):\n    train(step)\n")
    got = programs.recorded("train.py")
    assert windows(programs) == ["first"]
    assert "LEAK" not in got.err and "GROWING" not in got.err


def test_out_of_memory(programs):
    write(
        programs,
        "torch.cuda.set_per_process_memory_fraction(0.02)\n"
        "while True:\n    train(0)\n    kept.append(torch.ones(1 << 26, device='cuda'))\n",
    )
    want = programs.plain("train.py")
    got = programs.recorded("train.py", options=("--quiet",))
    assert got.status == want.status == 1
    assert [line for line in got.err.splitlines() if line.startswith("  File")] == [
        line for line in want.err.splitlines() if line.startswith("  File")
    ]
    assert "oom1.pickle" in programs.files()


def test_usr2(programs):
    write(
        programs,
        "for step in range(100000):\n    train(step)\n    if step == 20: print('ready', flush=True)\n"
        "    if step > 20 and os.path.exists('.vramscope/latest/window1.pickle'): break\n",
    )
    process = programs.start("train.py", options=("--first-window", "no"))
    wait_for(process, b"ready")
    os.kill(process.pid, signal.SIGUSR2)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert windows(programs) == ["signal"]


@pytest.mark.parametrize("fork", ["fork", "spawn"])
def test_loader_workers(programs, fork):
    write(
        programs,
        f"""
from torch.utils.data import DataLoader
if __name__ == "__main__":
    for batch in DataLoader(torch.ones(64, 8), num_workers=2, multiprocessing_context="{fork}"):
        train(0)
    print("done")
""",
    )
    programs.same("train.py")
    assert (programs.events()[-1]["source"], programs.events()[-1]["steps"]) == ("optimizer", 64)


def test_a_program_without_torchs_allocator(programs):
    programs.env["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
    write(programs, "for step in range(100):\n    train(step)\nprint('done')\n")
    programs.same("train.py")
