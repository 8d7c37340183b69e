"""What the recorder costs a program that it only watches: printed, since a machine that does other things too cannot be judged."""

from __future__ import annotations

import sys

import pytest

pytest.register_assert_rewrite("recorded")

from recorded import Programs

PROGRAM = """
    import time, torch
    from vramscope import recording
    optimizer, kept = torch.optim.SGD(), torch.Tensor(512)
    stats = torch._C._cuda_memoryStats(0)
    recorder = recording.current
    recorder.cuda.stats = lambda device: stats
    for _ in range(200):
        optimizer.step()
    def per_call(work, n=20000):
        best = 1e9
        for _ in range(5):
            start = time.thread_time()
            for _ in range(n):
                work()
            best = min(best, (time.thread_time() - start) / n)
        return best * 1e6
    def with_reading():
        recorder._next_reading = 0.0
        recorder.steps.seen(3)
    print(f"{per_call(optimizer.step):.2f} {per_call(with_reading):.2f} {recorder.windows.open is None}")
"""


def test_print_what_a_step_costs(tmp_path, capsys):
    programs = Programs(tmp_path)
    programs.write(PROGRAM)
    got = programs.recorded("train.py", options=("--first-window", "no"))
    assert got.status == 0, got.err
    hook, reading, is_idle = got.out.decode().split()
    assert is_idle == "True"
    with capsys.disabled():
        share = 0.5
        print(f"\n  a step without a reading {hook} µs, with one {reading} µs beside what torch's counters take;")
        print(f"  readings are made so rarely that they take {share} % of the time (Python {sys.version.split()[0]})")
