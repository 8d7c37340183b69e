"""Runs the programs of `../reverse/programs`, each recorded under a setting that is not the default: `play_reverse.py OUT`.

The first row of a case is its recorded run. The limit of garbage_collection_threshold is a share of what the default run reserved at its peak,
so a first default run, which is not kept, tells how much that is.
"""
import concurrent.futures
import json
import lzma
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS, MEASURE = (os.path.join(HERE, "..", part, "programs") for part in ("reverse", "more"))
COLLECTS, SHARE = "garbage_collection_threshold:0.6", 1.25
SETTINGS = ["", "expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:8", "expandable_segments:True,roundup_power2_divisions:8", COLLECTS, "large_segment_size_mb:64"]
RECORDED = {"diffusion_unet": SETTINGS[1], "moe_routing": SETTINGS[2], "graph_batches": SETTINGS[3], "generate_then_train": SETTINGS[4], "lora_two_optimizers": COLLECTS, "video_checkpoint": SETTINGS[6]}


def play(case, conf, fraction, record, work):
    out = os.path.join(work, case, f"{conf or 'default'}_{fraction or 1}_{record}".replace(":", "_").replace(",", "__"))
    env = {k: v for k, v in os.environ.items() if "ALLOC_CONF" not in k}
    env.update(CASE_OUT=out, PYTHONPATH=MEASURE, **({"PYTORCH_CUDA_ALLOC_CONF": conf} if conf else {}), **({"CASE_FRACTION": repr(fraction)} if fraction else {}), **({"CASE_RECORD": "1"} if record else {}))
    done = subprocess.run([sys.executable, "train.py"], cwd=os.path.join(PROGRAMS, case), env=env, capture_output=True, text=True, timeout=240)
    facts = os.path.join(out, "facts.json")
    if not os.path.exists(facts):
        return {"conf": conf, "failed": done.stderr[-800:]}, out
    return {**json.load(open(facts)), **({"recorded": True} if record else {})}, out


def case_rows(case, pool, work, keep, total):
    trial, _ = play(case, "", None, False, work)
    if "failed" in trial:
        return [trial]
    fraction, own = SHARE * trial["peak_reserved"] / total, RECORDED[case]
    limited = own == COLLECTS  # then the program has its fraction under every setting
    jobs = [(own, fraction if limited else None, True)]
    jobs += [(conf, fraction if limited or conf == COLLECTS else None, False) for conf in SETTINGS if conf != own]
    jobs += [(conf, None, False) for conf in SETTINGS if limited]
    rows = list(pool.map(lambda job: play(case, *job, work), jobs))
    os.makedirs(os.path.join(keep, case), exist_ok=True)
    with open(os.path.join(keep, case, "final.pickle.xz"), "wb") as file:
        file.write(lzma.compress(open(os.path.join(rows[0][1], "final.pickle"), "rb").read(), preset=9 | lzma.PRESET_EXTREME))
    return [facts for facts, _ in rows]


def main():
    import torch
    total = torch.cuda.get_device_properties(0).total_memory
    keep, work = os.path.join(sys.argv[1], "recordings"), tempfile.mkdtemp()
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("WORKERS", "12"))) as pool, concurrent.futures.ThreadPoolExecutor(6) as outer:
        rows = list(outer.map(lambda c: case_rows(c, pool, work, keep, total), RECORDED))
    what = ("the same program under different PYTORCH_CUDA_ALLOC_CONF settings on one H200 (torch 2.11.0+cu130); the recording to predict from is recordings/<case>/, "
            "made by the first run of each case, under a setting that is not the default; requests and requested_bytes tell whether two runs asked for the same")
    with open(os.path.join(sys.argv[1], "truth.json"), "w") as file:
        file.write(json.dumps({"what": what, "total_memory": total})[:-1] + ', "cases": {\n' + ",\n".join(f' "{case}": [\n  ' + ",\n  ".join(json.dumps(r) for r in runs) + "]" for case, runs in zip(RECORDED, rows)) + "}}\n")
    for case, runs in zip(RECORDED, rows):
        print(case, [((r.get("peak_reserved") or 0) >> 20, r.get("requests")) for r in runs], [r["failed"][-400:] for r in runs if "failed" in r])


main()
