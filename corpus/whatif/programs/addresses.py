"""Where cudaMalloc and the expandable segments put memory: `addresses.py OUT.json`.

Every scenario runs in a process of its own, twice. A row is [what, MiB, address]; every block is a whole segment.
"""
import concurrent.futures
import json
import os
import random
import subprocess
import sys

MIB = 1 << 20


class Log:
    def __init__(self):
        import torch
        self.torch, self.rows, self.live = torch, [], {}

    def get(self, name, mib, stream=None):
        torch = self.torch
        with torch.cuda.stream(stream or torch.cuda.default_stream()):
            if mib == 2:  # two halves fill a segment of the small pool
                self.live[name] = [torch.empty(MIB, dtype=torch.uint8, device="cuda") for _ in range(2)]
            else:
                self.live[name] = [torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")]
        self.rows.append(["get", mib, self.live[name][0].data_ptr()])

    def give(self, *names):
        for name in names:
            block = self.live.pop(name)
            self.rows.append(["give", block[0].numel() * len(block) // MIB, block[0].data_ptr()])
            del block
        self.torch.cuda.empty_cache()


def ladder(log):
    for n, mib in enumerate([20, 20, 30, 50, 100, 200, 22, 12, 20, 1000, 20, 40, 5000, 20, 64, 128, 32, 20]):
        log.get(n, mib)


def with_small(log):
    for n in range(40):
        log.get(n, [2, 2, 20, 2, 30, 2, 2, 2][n % 8])
    log.give(*range(0, 40, 3))
    for n in range(40, 60):
        log.get(n, [2, 20, 2, 12][n % 4])


def reuse(log):
    for n in range(8):
        log.get(n, 40)
    log.give(2)
    log.get("same", 40)
    log.give("same")
    log.get("smaller", 20)
    log.get("rest", 20)
    log.get("more", 20)
    log.give("smaller", "rest", "more")
    log.get("larger", 60)
    log.give(4)
    log.give(5)
    log.get("two holes", 80)
    log.give(0)
    log.give(7)
    log.get("which", 40)
    log.get("which next", 40)
    log.give(1)
    log.give(6)
    log.get("which third", 40)
    log.get("which fourth", 40)
    log.give(*list(log.live))
    for n in range(6):
        log.get(n, 40)
    log.give(*range(6))
    for n in range(6):
        log.get(n, 20 + 14 * n)


def wander(seed, sizes):
    def scenario(log):
        rng = random.Random(seed)
        for n in range(260):
            if log.live and (len(log.live) > 14 or rng.random() < 0.42):
                log.give(rng.choice(list(log.live)))
            else:
                log.get(n, rng.choice(sizes))
    return scenario


def reserve(log):
    streams = [log.torch.cuda.Stream() for _ in range(4)]
    n = 0
    for mib in (40, 2, 60):
        for stream in streams:
            log.get(n, mib, stream)
            n += 1
    log.give(0, 8)
    log.get("again", 40, streams[0])
    log.give("again")
    log.give(1, 9)
    log.get("after", 40, streams[1])
    log.get("after 0", 40, streams[0])
    for _ in range(3):
        log.give(*[k for k in log.live])
        for stream in reversed(streams):
            log.get(n, 40, stream)
            log.get(n + 1, 2, stream)
            n += 2


SCENARIOS = {
    "ladder": ("", ladder), "with_small": ("", with_small), "reuse": ("", reuse),
    "wander": ("", wander(1, list(range(10, 202, 2)))), "wander_few_sizes": ("", wander(2, [12, 20, 40, 60, 100])), "wander_small": ("", wander(3, [2, 2, 2, 20, 12, 40])),
    "reserve": ("expandable_segments:True", reserve),
}


def play(name):
    conf, scenario = SCENARIOS[name]
    import torch
    torch.cuda.init()
    log = Log()
    scenario(log)
    print("RESULT" + json.dumps(log.rows))


def fresh(name):
    env = {k: v for k, v in os.environ.items() if "ALLOC_CONF" not in k}
    if SCENARIOS[name][0]:
        env["PYTORCH_CUDA_ALLOC_CONF"] = SCENARIOS[name][0]
    done = subprocess.run([sys.executable, __file__, "--play", name], env=env, capture_output=True, text=True, timeout=200)
    found = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    return json.loads(found[-1][6:]) if found else done.stderr[-800:]


def main():
    if sys.argv[1] == "--play":
        return play(sys.argv[2])
    jobs = [name for name in SCENARIOS for _ in range(2)]
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("WORKERS", "14"))) as pool:
        rows = list(pool.map(fresh, jobs))
    out = {}
    for name, result in zip(jobs, rows):
        out.setdefault(name, []).append(result)
    text = ",\n".join(f" {json.dumps(name)}: [\n  " + ",\n  ".join(json.dumps(r, separators=(",", ":")) for r in runs) + "]" for name, runs in out.items())
    open(sys.argv[1], "w").write("{\n" + text + "\n}\n")
    print("addresses", {k: [len(r) if isinstance(r, list) else r for r in v] for k, v in out.items()})


main()
