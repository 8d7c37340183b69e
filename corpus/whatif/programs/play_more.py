"""Runs the programs of `../more/programs` under each setting: `play_more.py OUT`.

The default run is recorded. Limits are shares of what the default run reserved at its peak, so that they matter.
"""
import concurrent.futures
import json
import lzma
import os
import subprocess
import sys
import tempfile

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "more", "programs")
# PYTORCH_CUDA_ALLOC_CONF, limit as a share of the default run's peak
SETTINGS = [
    ("expandable_segments:True", None), ("max_split_size_mb:64", None), ("roundup_power2_divisions:8", None), ("expandable_segments:True,roundup_power2_divisions:8", None),
    ("garbage_collection_threshold:0.6", 1.25), ("expandable_segments:True,garbage_collection_threshold:0.6", 1.25), ("", 0.9), ("expandable_segments:True", 0.9), ("max_split_size_mb:64", 0.9),
]


def play(case, conf, fraction, record, work):
    out = os.path.join(work, case, f"{conf or 'default'}_{fraction or 1}".replace(":", "_").replace(",", "__"))
    env = {k: v for k, v in os.environ.items() if "ALLOC_CONF" not in k}
    env.update(CASE_OUT=out, PYTHONPATH=PROGRAMS, **({"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}), **({"CASE_FRACTION": repr(fraction)} if fraction else {}), **({"CASE_RECORD": "1"} if record else {}))
    done = subprocess.run([sys.executable, "train.py"], cwd=os.path.join(PROGRAMS, case), env=env, capture_output=True, text=True, timeout=240)
    facts = os.path.join(out, "facts.json")
    if not os.path.exists(facts):
        return {"conf": conf, "failed": done.stderr[-800:]}, out
    return json.load(open(facts)), out


def case_rows(case, pool, work, keep, total):
    first, out = play(case, "", None, True, work)
    yield first
    if "failed" in first:
        return
    packed = lzma.compress(open(os.path.join(out, "final.pickle"), "rb").read(), preset=9 | lzma.PRESET_EXTREME)
    os.makedirs(os.path.join(keep, case), exist_ok=True)
    open(os.path.join(keep, case, "final.pickle.xz"), "wb").write(packed)
    yield from pool.map(lambda s: play(case, s[0], s[1] and s[1] * first["peak_reserved"] / total, False, work)[0], SETTINGS)


def main():
    import torch
    total = torch.cuda.get_device_properties(0).total_memory
    keep, work = os.path.join(sys.argv[1], "recordings"), tempfile.mkdtemp()
    cases = sorted(c for c in os.listdir(PROGRAMS) if os.path.isdir(os.path.join(PROGRAMS, c)) and c != "__pycache__")
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("WORKERS", "8"))) as pool, concurrent.futures.ThreadPoolExecutor(4) as outer:
        rows = list(outer.map(lambda c: list(case_rows(c, pool, work, keep, total)), cases))
    what = ("peak reserved and peak allocated bytes measured on one H200 (torch 2.11.0+cu130) for the same program under different PYTORCH_CUDA_ALLOC_CONF settings; "
            "the recording to predict from is recordings/<case>/, made by the first run of each case")
    with open(os.path.join(sys.argv[1], "truth.json"), "w") as file:
        file.write(json.dumps({"what": what, "total_memory": total})[:-1] + ', "cases": {\n' + ",\n".join(f' "{case}": [\n  ' + ",\n  ".join(json.dumps(r) for r in runs) + "]" for case, runs in zip(cases, rows)) + "}}\n")
    for case, runs in zip(cases, rows):
        print(case, [(r.get("peak_reserved") or 0) >> 20 for r in runs], [r["failed"][-300:] for r in runs if "failed" in r])


main()
