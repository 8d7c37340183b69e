#!/usr/bin/env python3
"""Times `vramscope check` on a tree of Python code, beside TorchFix on the same tree.

    cargo build --release
    scripts/bench_check.py [-n 3] [--bin target/release/vramscope] [--torchfix torchfix] DIRECTORY

Both run in turns, N times each, in processes of their own. Printed are the time on the clock, the time on the processors
(user + system), the largest resident memory and lines per second of the clock: of the run in the middle, and of the best. Where
a virtual machine must first be given its memory by the host, all but the best measure that. TorchFix looks for other things and one file at
a time; it is there to say what a linter of PyTorch code takes on this machine. Without `--torchfix` only `check` runs.
Needs Python 3.9 or later and nothing else; `pip install torchfix` for the comparison.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def measure(command):
    """Seconds on the clock, seconds on the processors, and megabytes at the peak, of one run."""
    null = os.open(os.devnull, os.O_RDWR)
    began = time.perf_counter()
    actions = [(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    elapsed = time.perf_counter() - began
    os.close(null)
    # Linters end with 1 when they found something.
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit(f"{' '.join(command)} failed: {status}")
    unit = 1 if sys.platform == "darwin" else 1024
    return elapsed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("-n", type=int, default=3, help="runs of each (default 3)")
    parser.add_argument("--bin", default=str(target / "release" / "vramscope"))
    parser.add_argument("--torchfix", help="the program to compare with")
    options = parser.parse_args()
    files = list(options.directory.rglob("*.py"))
    lines = sum(file.read_bytes().count(b"\n") for file in files)
    print(f"{lines:,} lines in {len(files):,} files; {os.cpu_count()} cores; {subprocess.getoutput(f'{options.bin} --version')}")
    commands = {"vramscope check": [options.bin, "check", str(options.directory), "--no-respect-gitignore", "--quiet", "--format", "concise"]}
    if options.torchfix:
        commands["torchfix"] = [options.torchfix, str(options.directory)]
    runs = {name: [] for name in commands}
    for _ in range(options.n):
        for name, command in commands.items():
            runs[name].append(measure(command))
    for name, figures in runs.items():
        clock, processors, memory = (statistics.median(column) for column in zip(*figures))
        best = min(figures)[0]
        print(
            f"{name:16} {clock:8.2f} s, on the processors {processors:8.2f} s, {memory:6.0f} MB, {lines / clock:12,.0f} lines/s; "
            f"at best {best:.2f} s, {lines / best:,.0f} lines/s"
        )


if __name__ == "__main__":
    main()
