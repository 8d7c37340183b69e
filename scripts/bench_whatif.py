#!/usr/bin/env python3
"""Measures how fast recordings are replayed under other settings, in one run:

- events per second of the replay itself, for settings of each kind (`cargo bench -p vramscope-replay`, which is built here),
- the time of `vramscope whatif --sweep` as a whole, from the file to the answer, on two processor cores,
- beside them a best-fit replay of the same events in plain Python, under the default setting only: about what one would write.

    cargo build --release
    scripts/bench_whatif.py [-n 5] [--bin target/release/vramscope] [--cores 2] [--no-bench]

The command and the Python replay run in turns, N times each, so that neither has the quieter half of the machine. Times are on the
wall and on the processor (user + system, of all threads), the latter from the kernel (`wait4`). Files are as in the corpus,
compressed; unpacking and reading is part of the command's time and not part of the Python replay's.
Needs Python 3.8 or later, cargo, and the `zstd` command.
"""
import argparse
import bisect
import glob
import json
import os
import pickle
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
FILE = os.path.join(ROOT, "corpus", "large", "gpt_long_python.pickle.zst")
MIB = 1 << 20
# Seconds for a sweep over twelve settings, and million events a second for each setting.
WALL_BUDGET = 5
SPEED_BUDGET = 5


class Pool:
    """Segments of one kind and stream: free blocks by size and address, and the neighbours of every block by address."""

    def __init__(self, small):
        self.small = small
        self.free = []
        # Address: [size, whether it is free, address before it, address behind it].
        self.blocks = {}

    def take(self, size):
        """The smallest free block that is large enough, if there is one."""
        place = bisect.bisect_left(self.free, (size, 0))
        return self.free.pop(place)[1] if place < len(self.free) else None

    def split(self, addr, size):
        block = self.blocks[addr]
        rest = block[0] - size
        if rest >= 512 if self.small else rest > MIB:
            behind = block[3]
            self.blocks[addr + size] = [rest, True, addr, behind]
            if behind is not None:
                self.blocks[behind][2] = addr + size
            block[0], block[3] = size, addr + size
            bisect.insort(self.free, (rest, addr + size))
        block[1] = False

    def give_back(self, addr):
        block = self.blocks[addr]
        for neighbour in (block[2], block[3]):
            if neighbour is not None and self.blocks[neighbour][1]:
                self.free.pop(bisect.bisect_left(self.free, (self.blocks[neighbour][0], neighbour)))
                first, last = min(addr, neighbour), max(addr, neighbour)
                gone = self.blocks.pop(last)
                block, addr = self.blocks[first], first
                block[0] += gone[0]
                block[3] = gone[3]
                if gone[3] is not None:
                    self.blocks[gone[3]][2] = first
        block[1] = True
        bisect.insort(self.free, (block[0], addr))


def replay(trace, before):
    """The most bytes that the requests of a trace reserve under the default setting. `before`: blocks (address, size, stream) that were
    there when it began; they are requested first."""
    pools, held, reserved, top = {}, {}, 0, 1 << 46

    def request(recorded, size, stream):
        nonlocal reserved, top
        size = max(512, (size + 511) // 512 * 512)
        small = size <= MIB
        pool = pools.get((small, stream))
        if pool is None:
            pool = pools[small, stream] = Pool(small)
        addr = pool.take(size)
        if addr is None:
            segment = 2 * MIB if small else 20 * MIB if size < 10 * MIB else (size + 2 * MIB - 1) // (2 * MIB) * 2 * MIB
            reserved += segment
            addr, top = top, top + segment
            pool.blocks[addr] = [segment, False, None, None]
        pool.split(addr, size)
        held[recorded] = pool, addr

    for block in before:
        request(*block)
    for event in trace:
        action = event["action"]
        if action == "alloc":
            request(event["addr"], event["size"], event["stream"])
        elif action == "free_completed":
            pool, addr = held.pop(event["addr"])
            pool.give_back(addr)
    return reserved


def load(path):
    """The trace of device 0 and the blocks from before it."""
    snapshot = pickle.loads(subprocess.run(["zstd", "-dqc", path], check=True, stdout=subprocess.PIPE).stdout)
    trace = snapshot["device_traces"][0]
    before, seen = {}, set()
    for event in trace:
        if event["action"] == "alloc":
            seen.add(event["addr"])
        elif event["action"] == "free_completed" and event["addr"] not in seen:
            before.setdefault(event["addr"], (event["addr"], event["size"], event["stream"]))
            seen.add(event["addr"])
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated" and block["address"] not in seen and segment["device"] == 0:
                before[block["address"]] = block["address"], block["requested_size"], segment["stream"]
    return trace, sorted(before.values())


def measure(command, cores):
    """Seconds on the wall and on the processor of one run."""
    actions = [(os.POSIX_SPAWN_DUP2, os.open(os.devnull, os.O_RDWR), 1)]
    everywhere = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    if everywhere:
        os.sched_setaffinity(0, sorted(everywhere)[:cores])
    began = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - began
    if everywhere:
        os.sched_setaffinity(0, everywhere)
    os.close(actions[0][1])
    if status != 0:
        sys.exit(f"{' '.join(command)} failed")
    return wall, usage.ru_utime + usage.ru_stime


def benches():
    """Names, events and seconds of each benchmark, in the order in which they run."""
    began = time.time()
    done = subprocess.run(["cargo", "bench", "-q", "-p", "vramscope-replay"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    results = glob.glob(os.path.join(TARGET, "criterion", "whatif", "*", "new", "estimates.json"))
    # Those of earlier versions of the benchmark may still lie there.
    for path in sorted((path for path in results if os.path.getmtime(path) >= began), key=os.path.getmtime):
        with open(os.path.join(os.path.dirname(path), "benchmark.json")) as file:
            about = json.load(file)
        with open(path) as file:
            yield about["function_id"], about["throughput"]["Elements"], json.load(file)["median"]["point_estimate"] / 1e9


def table(rows, heads):
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("--bin", default=os.path.join(TARGET, "release", "vramscope"), help="the release binary")
    parser.add_argument("--cores", type=int, default=2, help="processor cores for the command (default 2; on Linux only)")
    parser.add_argument("--no-bench", action="store_true", help="leave out the replay by itself, which takes minutes to build")
    args = parser.parse_args()
    if not os.path.exists(args.bin):
        sys.exit(f"{args.bin} is not there; build it with `cargo build --release` or name it with --bin")
    command = [args.bin, "whatif", FILE, "--sweep", "--format", "json"]
    answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    n_events, n_settings = answer["events"], len(answer["settings"])
    print(f"{os.path.basename(FILE)}: {n_events:,} events, {n_settings} settings, {args.n} runs of each in turns\n")

    trace, before = load(FILE)
    walls, cpus, python = [], [], []
    for _ in range(args.n):
        wall, cpu = measure(command, args.cores)
        walls.append(wall)
        cpus.append(cpu)
        began = time.process_time()
        peak = replay(trace, before)
        python.append(time.process_time() - began)
    del trace

    def spread(samples):
        return [f"{value:.2f}" for value in (statistics.median(samples), min(samples), max(samples))]

    table(
        [
            [f"vramscope whatif --sweep, {n_settings} settings, wall", *spread(walls)],
            [f"vramscope whatif --sweep, {n_settings} settings, processor", *spread(cpus)],
            ["plain Python replay, 1 setting, processor", *spread(python)],
        ],
        ["seconds", "median", "min", "max"],
    )
    slow = n_events / statistics.median(python)
    print(f"\nwanted of the command on two cores: {WALL_BUDGET} s or less on the wall")
    print(f"plain Python replays {slow / 1e6:.2f} million events a second; its peak is {peak / MIB:,.0f} MiB")
    if not args.no_bench:
        print(f"\nreplay in vramscope on one core, wanted {SPEED_BUDGET} million events a second or more:")
        rows = [
            [name, f"{1e3 * seconds:,.1f}", f"{events / seconds / 1e6:.1f}", f"{events / seconds / slow:,.0f}"]
            for name, events, seconds in benches()
        ]
        table(rows, ["", "ms", "million events/s", "× Python"])


if __name__ == "__main__":
    main()
