"""Holds what `vramscope whatif` says against `../reverse/truth.json` and `../failed/truth.json`: `judge.py VRAMSCOPE`. Needs no GPU.

For `reverse` a row is right if the peak and the last figure of reserved memory are exact. For `failed` it is right if the request that failed when
it was recorded is said to be served, or not to be, as it was; once with what the recording gives away of the limit, once with the limit told.
"""
import collections
import json
import lzma
import os
import pickle
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KEYS = {"peak_reserved": ("peak_reserved",), "final_reserved": ("final_reserved",), "peak_allocated": ("peak_allocated",), "num_device_alloc": ("segment_allocs", "maps"), "num_device_free": ("segment_frees", "unmaps"), "num_alloc_retries": ("retries",)}


def truth(part):
    known = json.load(open(os.path.join(HERE, "..", part, "truth.json")))
    return known["total_memory"], known["cases"]


def recording(part, case, name):
    file = tempfile.NamedTemporaryFile(suffix=".pickle", delete=False)
    file.write(lzma.open(os.path.join(HERE, "..", part, "recordings", case, name)).read())
    file.close()
    return file.name


def whatif(path, confs, *limits):
    words = [word for conf in confs for word in ("--conf", conf)]
    done = subprocess.run([sys.argv[1], "whatif", path, "--format", "json", *limits, *words], capture_output=True, text=True)
    if done.returncode == 2:
        raise SystemExit(done.stderr)
    answer = json.loads(done.stdout)
    return answer, {setting["conf"]: setting for setting in answer["settings"]}


def limits_of(row, total):
    if "memory_fraction" in row:
        return ["--capacity", str(total), "--memory-fraction", repr(row["memory_fraction"])]
    return ["--capacity", str(row["left"])] if "left" in row else []


def judge_reverse():
    total, cases = truth("reverse")
    right, wrong, all_ = collections.Counter(), [], 0
    for case, rows in cases.items():
        path = recording("reverse", case, "final.pickle.xz")
        for row in rows:
            if "memory_fraction" in rows[0] and "memory_fraction" not in row and row["conf"] == rows[0]["conf"]:
                continue  # the recording's own setting under another limit is no other setting
            _, said = whatif(path, [row["conf"]], *limits_of(row, total))
            off = {key: (row[key], sum(said[row["conf"]][part] for part in parts)) for key, parts in KEYS.items()}
            all_ += 1
            right.update(key for key, (measured, predicted) in off.items() if measured == predicted)
            off = {key: pair for key, pair in off.items() if pair[0] != pair[1]}
            if off:
                wrong.append((case, row["conf"] or "defaults", off))
    print("recorded under another setting:", all_, "rows;", ", ".join(f"{right[key]} {key}" for key in KEYS))
    for line in wrong:
        print("   ", *line)


def judge_failed():
    total, cases = truth("failed")
    counts = collections.defaultdict(collections.Counter)
    for case, rows in cases.items():
        path = recording("failed", case, "oom.pickle.xz")
        trace = next(t for t in pickle.load(open(path, "rb"))["device_traces"] if t)
        first = next(i for i, e in enumerate(trace) if e["action"] == "oom")
        target = rows[0]["failures"][0]["requests"]
        for told in ("shown by the recording", "told"):
            limits = limits_of(rows[0], total) if told == "told" else []
            _, said = whatif(path, [row["conf"] for row in rows], *limits)
            for row in rows:
                serves = not row["failures"] or row["failures"][0]["requests"] > target
                oom = said[row["conf"]]["oom"]
                claims = oom is None or oom["event"] > first
                verdict = "right" if claims == serves else "false rescue" if claims else "missed rescue"
                counts[told, "own" if row["conf"] == "" else "other"][verdict] += 1
                if verdict != "right":
                    print("   ", case, row["conf"] or "defaults", told, verdict)
            answer, _ = whatif(path, [], *limits)
            row = next((r for r in rows if r["conf"] == answer["recommended"]), None)
            fate = "none" if answer["recommended"] is None else "not measured" if row is None else "survives" if row["survives"] else f"fails {row['failures'][0]['requests'] - target} requests later"
            print("   ", case, "recommended, limit", told + ":", answer["recommended"], "->", fate)
    for (told, whose), verdicts in counts.items():
        print(f"failed, limit {told}, {whose} setting:", dict(verdicts))


judge_reverse()
judge_failed()
