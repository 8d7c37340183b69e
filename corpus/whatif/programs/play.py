"""Plays jobs of `drive.py` side by side and packs what they wrote.

    play.py random OUT     every script of ../random/scripts under every setting
    play.py vectors OUT    the worked examples of vectors.py
"""
import concurrent.futures
import json
import lzma
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.join(HERE, "..", "random", "scripts")

# name: (PYTORCH_CUDA_ALLOC_CONF, whether the script's memory limit is set)
SETTINGS = {
    "default": ("", False),
    "default_limit": ("", True),
    "expandable": ("expandable_segments:True", False),
    "expandable_limit": ("expandable_segments:True", True),
    "split32": ("max_split_size_mb:32", False),
    "split64_limit": ("max_split_size_mb:64", True),
    "split32_rounding64": ("max_split_size_mb:32,max_non_split_rounding_mb:64", False),
    "roundup4": ("roundup_power2_divisions:4", False),
    "roundup_list": ("roundup_power2_divisions:[4:2,16:8,64:4,>:1]", False),
    "gc60_limit": ("garbage_collection_threshold:0.6", True),
    "gc50_split40_limit": ("garbage_collection_threshold:0.5,max_split_size_mb:40", True),
    "segment12": ("large_segment_size_mb:12", False),
    "segment64": ("large_segment_size_mb:64", False),
    "expandable_segment64": ("expandable_segments:True,large_segment_size_mb:64", False),
    "expandable_segment12_limit": ("expandable_segments:True,large_segment_size_mb:12", True),
    "expandable_gc70_roundup8_limit": ("expandable_segments:True,garbage_collection_threshold:0.7,roundup_power2_divisions:8", True),
}
WITH_STACKS = {("mixed", "default"), ("growing", "expandable"), ("pending", "default"), ("empty_often", "default")}


def random_jobs():
    for file in sorted(os.listdir(SCRIPTS)):
        path = os.path.join(SCRIPTS, file)
        head = "".join(line for line in open(path) if line.startswith("#"))
        limit = int(re.search(r"limit_mib (\d+)", head)[1])
        only = re.search(r"^# settings: (.+)", head, re.M)
        for setting, (conf, limited) in SETTINGS.items():
            if only and setting not in only[1].split():
                continue
            name = file.removesuffix(".txt")
            if os.environ.get("ONLY") and not re.match(os.environ["ONLY"], name):
                continue
            yield dict(name=name, setting=setting, conf=conf, script=path, limit_mib=limit if limited else None, stacks=(name, setting) in WITH_STACKS)


def vector_jobs(work):
    import vectors
    for vector in vectors.VECTORS:
        path = os.path.join(work, vector["name"] + ".txt")
        with open(path, "w") as out:
            out.write("\n".join(vector["steps"]) + "\n")
        yield dict(script=path, every_op=True, **{k: v for k, v in vector.items() if k not in ("steps", "expected", "source", "about")})


def play(job, work):
    name = job["name"] + "." + (job.get("setting") or "vector")
    base = os.path.join(work, name)
    job = dict(job, out=base + ".json", snapshot=base + ".pickle")
    json.dump(job, open(base + ".job", "w"))
    with open(base + ".log", "w") as log:
        try:
            code = subprocess.run([sys.executable, os.path.join(HERE, "drive.py"), base + ".job"], stdout=log, stderr=log, timeout=150).returncode
        except subprocess.TimeoutExpired:
            code = "timeout"
    log = open(base + ".log").read()[-1500:]
    if not os.path.exists(job["out"]):
        return name, {"name": job["name"], "setting": job.get("setting"), "conf": job.get("conf"), "failed": code, "log": log}, None
    result = json.load(open(job["out"]))
    if log:
        result["log"] = log
    return name, result, lzma.compress(open(job["snapshot"], "rb").read(), preset=9 | lzma.PRESET_EXTREME)


def recording(result):
    """Of the scripts made by chance only the counters are kept."""
    return None if result["name"].startswith("chance") else f"recordings/{result['name']}.{result['setting']}.pickle.xz"


def judged(result):
    """A vector: what it asks, what the rules say, what was measured, and whether they agree."""
    import vectors
    vector = next(v for v in vectors.VECTORS if v["name"] == result["name"])
    out = {k: vector[k] for k in ("name", "about", "conf", "steps")}
    out.update({k: vector[k] for k in ("limit_mib", "leave_mib", "fraction") if k in vector})
    out.update(expected_reserved_mib=vector["expected"], expected_failures=vector["ooms"] if vector["expected"] else None)
    rows = result.get("after_every_op", [])
    if vector["expected"]:
        same = len(rows) == len(vector["expected"]) and all(e is None or row[0] == e * (1 << 20) for row, e in zip(rows, vector["expected"]))
        out["agrees"] = same and result["oom_ops"] == vector["ooms"]
    out["measured"] = {k: v for k, v in result.items() if k not in ("name", "setting", "conf", "limit_mib", "reserved", "retries")}
    return out


def main():
    what, out = sys.argv[1:3]
    work, keep = tempfile.mkdtemp(), os.path.join(out, "recordings")
    os.makedirs(work, exist_ok=True)
    os.makedirs(keep, exist_ok=True)
    jobs = list(random_jobs() if what == "random" else vector_jobs(work))
    # A job that takes the whole device must be alone on it.
    together, alone = [j for j in jobs if not j.get("leave_mib")], [j for j in jobs if j.get("leave_mib")]
    results = []
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("WORKERS", "14"))) as pool:
        for name, result, packed in list(pool.map(lambda j: play(j, work), together)) + [play(j, work) for j in alone]:
            results.append(result)
            if packed and (what == "vectors" or recording(result)):
                open(os.path.join(keep, name + ".pickle.xz"), "wb").write(packed)
    results = [judged(r) if what == "vectors" else dict(r, recording=recording(r)) for r in results]
    with open(os.path.join(out, "vectors.json" if what == "vectors" else "runs.json"), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(r) for r in results) + "\n]\n")
    print(what, len(results), "runs,", sum("failed" in r for r in results), "failed")
    for r in results:
        if "failed" in r or r.get("errors") or r.get("log"):
            print(r["name"], r["setting"], r.get("failed"), r.get("errors"), (r.get("log") or "")[-300:])


if __name__ == "__main__":
    main()
