#!/usr/bin/env python3
"""Compares `vramscope analyze` with Python merely loading the same snapshot.

    cargo build --release
    scripts/bench_against_pickle.py [-n 5] [--bin target/release/vramscope] [FILE]

Both run in turns, N times each, in processes of their own, so that neither has the quieter half of the machine. For each
the time on the processor (user + system) and the largest resident memory are taken from the kernel (`wait4`).
FILE may be compressed with zstd, gzip or xz; it is unpacked first, so that both read the same plain pickle.
Needs Python 3.8 or later and nothing else, and the `zstd` command for zstd files.
"""
import argparse
import gzip
import lzma
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LOAD = "import pickle, sys\nwith open(sys.argv[1], 'rb') as f:\n    pickle.load(f)"


def unpack(path, folder):
    """A plain copy of the file, which keeps the page cache warm for both."""
    name = os.path.basename(path)
    stem, suffix = os.path.splitext(name)
    if suffix == ".zst":
        plain = os.path.join(folder, stem)
        subprocess.run(["zstd", "-dqf", path, "-o", plain], check=True)
        return plain
    openers = {".gz": gzip.open, ".xz": lzma.open}
    plain = os.path.join(folder, stem if suffix in openers else name)
    with openers.get(suffix, open)(path, "rb") as source, open(plain, "wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    return plain


def measure(command):
    """Processor time in seconds and peak memory in MB of one run."""
    null = os.open(os.devnull, os.O_RDWR)
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
    _, status, usage = os.wait4(pid, 0)
    os.close(null)
    code = os.waitstatus_to_exitcode(status) if hasattr(os, "waitstatus_to_exitcode") else status >> 8
    # `analyze` ends with 1 when it found something.
    if code not in (0, 1):
        sys.exit(f"{' '.join(command)} failed with exit status {code}")
    unit = 1 if sys.platform == "darwin" else 1024
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release", "vramscope")
    parser.add_argument("file", nargs="?", default=os.path.join(ROOT, "corpus", "large", "gpt_long_python.pickle.zst"))
    parser.add_argument("-n", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--bin", default=default, help="the release binary")
    args = parser.parse_args()
    if not os.path.exists(args.bin):
        sys.exit(f"{args.bin} is not there; build it with `cargo build --release` or name it with --bin")
    with tempfile.TemporaryDirectory() as folder:
        plain = unpack(args.file, folder)
        print(f"{os.path.basename(plain)}, {os.path.getsize(plain) / 1e6:.0f} MB, {args.n} runs of each in turns\n")
        commands = {
            "pickle.load": [sys.executable, "-c", LOAD, plain],
            "vramscope analyze": [args.bin, "analyze", plain],
        }
        runs = {name: [] for name in commands}
        for _ in range(args.n):
            for name, command in commands.items():
                runs[name].append(measure(command))
    print(f"{'':18}  {'CPU seconds':^26}  {'peak memory, MB':^26}")
    print(f"{'':18}  " + "  ".join([f"{'median':>8} {'min':>8} {'max':>8}"] * 2))
    medians = {}
    for name, samples in runs.items():
        columns = list(zip(*samples))
        medians[name] = [statistics.median(c) for c in columns]
        cells = [f"{statistics.median(c):8.{d}f} {min(c):8.{d}f} {max(c):8.{d}f}" for c, d in zip(columns, (3, 0))]
        print(f"{name:18}  " + "  ".join(cells))
    ours, theirs = medians["vramscope analyze"], medians["pickle.load"]
    print(f"\nvramscope needs 1/{theirs[0] / ours[0]:.1f} of the processor time and 1/{theirs[1] / ours[1]:.1f} of the memory")


if __name__ == "__main__":
    main()
