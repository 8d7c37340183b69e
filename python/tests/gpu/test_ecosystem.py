"""The pytest plugin and the notebook magic on a real device: `python -m pytest python/tests/gpu`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from recorded import Programs

TESTS = """
import pytest, torch
kept, model = [], torch.nn.Linear(256, 256, device="cuda")

def make():
    return torch.ones(1 << 18, device="cuda")

@pytest.mark.no_vram_leak
def test_leaks():
    torch.ones(1 << 20, device="cuda")
    kept.append(make())

@pytest.mark.no_vram_leak
def test_leaks_through_the_graph():
    kept.append(model(torch.ones(256, 256, device="cuda")).relu().sum())

@pytest.mark.no_vram_leak
def test_clean():
    model(torch.ones(256, 256, device="cuda")).sum().backward()

@pytest.mark.vram_limit("3 MiB")
def test_within_its_limit():
    torch.ones(1 << 19, device="cuda")

@pytest.mark.vram_limit("3 MiB")
def test_above_its_limit():
    torch.ones(1 << 20, device="cuda")
"""


def test_the_plugin(tmp_path):
    programs = Programs(tmp_path, fake=False)
    programs.write(TESTS, "test_it.py")
    got = programs.python("-m", "pytest", "-p", "vramscope.pytest_plugin", "-p", "no:cacheprovider", "--vramscope", "test_it.py")
    out = got.out.decode()
    for line in (
        "memory of tensors grows every time: 5.0 MiB in 5 rounds on cuda:0",
        "  made at test_it.py:6 in make: 1.0 MiB in 1 block of the last round",
        "  made at test_it.py:15 in test_leaks_through_the_graph: ",
        "  held by test_it.kept[*]: ",
        "  held by test_it.kept[*] through the autograd graph: ",
        "the test took 4.0 MiB of device memory at its peak (cuda:0), 1.0 MiB more than its limit of 3.0 MiB",
        "     4.0 MiB  test_it.py::test_above_its_limit",
    ):
        assert line in out, out
    assert "3 failed, 2 passed" in out and "NotMeasured" not in out, out
    left = out[out.index(" left behind  test") :]
    assert "test_it.py::test_leaks\n" in left and "limit" not in left.split("short test summary")[0], out


def test_the_magic(tmp_path):
    pytest.importorskip("IPython")
    programs = Programs(tmp_path, fake=False)
    programs.write("""
        import torch
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance(colors="NoColor")
        torch.ones(1, device="cuda")
        shell.run_cell("%load_ext vramscope")
        shell.run_cell('%%vramscope\\nimport torch\\nkept = torch.ones(1 << 18, device="cuda"); torch.ones(1 << 19, device="cuda"); None')
    """)
    out = programs.plain("train.py").out.decode()
    assert "cuda:0: 1.0 MiB live, +1.0 MiB by this cell, +3.0 MiB at the peak\n" in out, out
    assert "+1.0 MiB  __main__.kept\n" in out, out
