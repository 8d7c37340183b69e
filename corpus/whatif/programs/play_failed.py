"""Runs the programs of `../failed/programs`, which die for lack of memory under the default settings: `play_failed.py OUT [CONF...]`.

A limit lies between what the program held and what was reserved for it without a limit (`between`), or is a share of what it held (`held`), or
so many MiB. Of the shares between, the largest is taken under which the default run fails. It is a memory fraction, or, for programs whose name
ends in `_full`, what is left of the device beside others' memory. With CONFs, only these are run, at the limits of OUT/truth.json.
"""
import concurrent.futures
import contextlib
import glob
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS, MIB = os.path.join(HERE, "..", "failed", "programs"), 1 << 20
BETWEEN = [0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.1, 0.03]
LIMITS = {"speech_hard_examples": "between", "chat_sessions": "between", "wide_logits": ("held", 0.93), "graph_leak": ("held", 0.8), "crops_among_pyramids": "between",
          "batch_halving": ("mib", 1100), "feature_store_full": "between", "first_step_full": ("held", 0.7)}
FULL = [case for case in LIMITS if case.endswith("_full")]
SETTINGS = ["expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:8", "garbage_collection_threshold:0.6", "expandable_segments:True,roundup_power2_divisions:8",
            "large_segment_size_mb:64", "max_split_size_mb:128", "max_split_size_mb:256", "max_split_size_mb:64,max_non_split_rounding_mb:128", "roundup_power2_divisions:4", "roundup_power2_divisions:16",
            "expandable_segments:True,large_segment_size_mb:12", "garbage_collection_threshold:0.8"]
WAITS = "import runpy, sys, torch; sys.stdin.readline(); sys.path.insert(0, '.'); runpy.run_path(sys.argv[1], run_name='__main__')"


class Run:
    """A process that has read its setting and waits for `go`."""

    def __init__(self, work, case, conf, limit, record=False):
        self.out, self.conf, self.record = tempfile.mkdtemp(dir=work), conf, record
        env = {k: v for k, v in os.environ.items() if "ALLOC_CONF" not in k}
        env.update(CASE_OUT=self.out, PYTHONPATH=PROGRAMS, **limit, **({"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}), **({"CASE_RECORD": "1"} if record else {}))
        (script,) = glob.glob(os.path.join(PROGRAMS, case, "*.py"))
        self.process = subprocess.Popen([sys.executable, "-c", WAITS, os.path.basename(script)], cwd=os.path.dirname(script), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def go(self):
        _, errors = self.process.communicate("\n", timeout=240)
        facts = os.path.join(self.out, "facts.json")
        if not os.path.exists(facts):
            return {"conf": self.conf, "failed": errors[-800:]}
        return {**json.load(open(facts)), **({"recorded": True} if self.record else {})}


def limit_of(case, bytes_, total):
    return {"CASE_LEAVE_MIB": str(int(bytes_ / MIB))} if case in FULL else {"CASE_FRACTION": repr(int(bytes_ / MIB) * MIB / total)}


def found_limit(case, free, total, several):
    """The limit, from runs with none and with some."""
    kind = LIMITS[case]
    if kind[0] == "mib":
        return limit_of(case, kind[1] * MIB, total)
    if kind[0] == "held":
        return limit_of(case, kind[1] * free["peak_allocated"], total)
    tries = [limit_of(case, free["peak_allocated"] + share * (free["peak_reserved"] - free["peak_allocated"]), total) for share in BETWEEN]
    for limit, facts in zip(tries, several(tries)):
        if not facts.get("survives", True):
            return limit
    return tries[-1]


def keep_recording(run, case, keep):
    os.makedirs(os.path.join(keep, case), exist_ok=True)
    with contextlib.suppress(FileNotFoundError), open(os.path.join(run.out, "oom.pickle"), "rb") as snapshot:
        with open(os.path.join(keep, case, "oom.pickle.xz"), "wb") as file:
            file.write(lzma.compress(snapshot.read(), preset=9 | lzma.PRESET_EXTREME))


def main():
    import torch
    total = torch.cuda.get_device_properties(0).total_memory
    keep, work, began = os.path.join(sys.argv[1], "recordings"), tempfile.mkdtemp(), time.time()
    truth = os.path.join(sys.argv[1], "truth.json")
    confs, known = sys.argv[2:], {}
    if confs:
        known = json.load(open(truth))["cases"]
    pool = concurrent.futures.ThreadPoolExecutor(int(os.environ.get("WORKERS", "12")))

    def side_by_side(case, limits):
        return list(pool.map(lambda limit: Run(work, case, "", limit).go(), limits))

    def one_by_one(case, limits):
        for limit in limits:
            yield Run(work, case, "", limit).go()

    def rows_of(case, limit, together):
        jobs = [(conf, False) for conf in confs] if confs else [("", True)] + [(conf, False) for conf in SETTINGS]
        if together:
            runs = list(pool.map(lambda job: (lambda run: (run, run.go()))(Run(work, case, job[0], limit, job[1])), jobs))
        else:
            runs = []
            for first in range(0, len(jobs), 14):
                waiting = [Run(work, case, conf, limit, record) for conf, record in jobs[first:first + 14]]
                runs += [(run, run.go()) for run in waiting]
        if not confs:
            keep_recording(runs[0][0], case, keep)
        return [facts for _, facts in runs]

    def limit_for(case, free, several):
        if confs:
            row = known[case][0]
            return {"CASE_LEAVE_MIB": str(row["leave_mib"])} if case in FULL else {"CASE_FRACTION": repr(row["memory_fraction"])}
        return found_limit(case, free, total, several)

    def case_rows(case):
        free = None if confs or LIMITS[case][0] == "mib" else Run(work, case, "", {}).go()
        if free and "failed" in free:
            return free, [free]
        if case in FULL:
            return free, []
        return free, rows_of(case, limit_for(case, free, lambda limits: side_by_side(case, limits)), True)

    def write(rows):
        what = ("programs that die for lack of memory, on one H200 (torch 2.11.0+cu130); the recording to predict from is recordings/<case>/, made by the first run of each case; "
                "the other runs have the same limit; failures are the requests that failed, caught or not, and requests those served before")
        cases = {case: known.get(case, []) + runs for case, (_, runs) in rows.items()}
        with open(truth, "w") as file:
            file.write(json.dumps({"what": what, "total_memory": total})[:-1] + ', "cases": {\n' + ",\n".join(f' "{case}": [\n  ' + ",\n  ".join(json.dumps(r) for r in runs) + "]" for case, runs in cases.items()) + "}}\n")

    with concurrent.futures.ThreadPoolExecutor(8) as outer:
        rows = dict(zip(LIMITS, outer.map(case_rows, LIMITS)))
    write(rows)
    print("side by side", round(time.time() - began), flush=True)
    for case in FULL:  # alone on the device
        free = rows[case][0]
        if not rows[case][1]:
            limit = limit_for(case, free, lambda limits: one_by_one(case, limits))
            rows[case][1].extend({**facts, "leave_mib": int(limit["CASE_LEAVE_MIB"])} for facts in rows_of(case, limit, False))
    write(rows)
    print("alone", round(time.time() - began))
    for case, (free, runs) in rows.items():
        print(case, free and [free.get(k, 0) >> 20 for k in ("peak_allocated", "peak_reserved")], [r["failed"][-500:] for r in runs if "failed" in r])
        for r in runs:
            print("   ", r["conf"] or "default", r.get("survives"), r.get("steps"), (r.get("peak_reserved") or 0) >> 20, r.get("requests"), [f["requests"] for f in r.get("failures", [])])


main()
