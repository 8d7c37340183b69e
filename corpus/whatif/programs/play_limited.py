"""Runs the programs of `../more/programs` with less memory than they need by default: `play_limited.py OUT`.

The default run is recorded up to the request that fails.
"""
import concurrent.futures
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "more", "programs")
LIMITS_MIB = {
    "checkpointed": 2700, "detection": 1400, "epochs_emptied": 1250, "feature_cache": 1036, "kv_cache": 257, "late_recording": 1900, "prefetcher": 1100, "varlen_adam": 1425,
}
SETTINGS = ["", "expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:8", "garbage_collection_threshold:0.8"]
KEPT = ("conf", "peak_reserved", "peak_allocated", "num_alloc_retries", "num_ooms")


def play(case, conf, fraction, work):
    out = os.path.join(work, case, conf.replace(":", "_") or "default")
    env = {k: v for k, v in os.environ.items() if "ALLOC_CONF" not in k}
    env.update(CASE_OUT=out, CASE_FRACTION=repr(fraction), PYTHONPATH=PROGRAMS, **({"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {"CASE_RECORD": "1"}))
    subprocess.run([sys.executable, "train.py"], cwd=os.path.join(PROGRAMS, case), env=env, capture_output=True, timeout=240)
    facts = json.load(open(os.path.join(out, "facts.json")))
    row = {key: facts[key] for key in KEPT}
    if "out_of_memory" in facts:
        obtaining = float(re.search(r"Tried to allocate ([\d.]+) MiB", facts["out_of_memory"]["message"])[1])
        row["out_of_memory"] = {"after_steps": facts["out_of_memory"]["after_steps"], "obtaining_mib": int(obtaining)}
    return row, out


def main():
    import torch
    total = torch.cuda.get_device_properties(0).total_memory
    keep, work, cases = os.path.join(sys.argv[1], "recordings"), tempfile.mkdtemp(), {}
    os.makedirs(keep, exist_ok=True)
    for case, mib in LIMITS_MIB.items():
        fraction = (mib * 2**20 + 0.5) / total
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            played = list(pool.map(lambda conf: play(case, conf, fraction, work), SETTINGS))
        cases[case] = {"limit_mib": mib, "runs": [row for row, _ in played]}
        if "out_of_memory" in played[0][0]:
            packed = lzma.compress(open(os.path.join(played[0][1], "final.pickle"), "rb").read(), preset=9 | lzma.PRESET_EXTREME)
            open(os.path.join(keep, case + ".pickle.xz"), "wb").write(packed)
    what = ("the programs of ../more under a memory limit (a fraction of the device's memory), with some settings: what was reserved and allocated at most, and after how many "
            "steps a request failed, with what would have been obtained for it; measured on one H200 (torch 2.11.0+cu130)")
    with open(os.path.join(sys.argv[1], "truth.json"), "w") as file:
        file.write(json.dumps({"what": what, "total_memory": total})[:-1] + ', "cases": {\n')
        rows = (f' "{case}": {{"limit_mib": {found["limit_mib"]}, "runs": [\n  ' + ",\n  ".join(json.dumps(r) for r in found["runs"]) + "]}" for case, found in cases.items())
        file.write(",\n".join(rows) + "}}\n")


main()
