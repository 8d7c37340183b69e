#!/usr/bin/env python3
"""Scores `vramscope analyze --format json` on the recordings. Usage: score.py [--bin PATH] [--data DIR] [--truth FILE] [-v]

For every case: all recordings together, and the last recording alone (a user often has just one).
A leak verdict is right when the leak finding with most bytes sits on one of the case's alloc lines.
The alloc lines come from facts.json; the tool is given the snapshots only, never the programs.
Exit status 0 when everything passes; the last line reads 'N passed, N failed'.
"""
import argparse
import json
import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument("--bin", default=os.environ.get("VRAMSCOPE", os.path.join(here, "..", "target", "release", "vramscope")))
ap.add_argument("--data", default=os.path.join(here, "recordings"))
ap.add_argument("--truth", default=os.path.join(here, "truth.json"))
ap.add_argument("-v", action="store_true", help="name the passes as well")
args = ap.parse_args()
LEAKS = ("leak", "growing")
SUFFIXES = (".pickle", ".pt", ".pickle.zst", ".pickle.gz", ".pickle.xz")


def natural(name):
    return [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)]


def run(files):
    p = subprocess.run([args.bin, "analyze", "--format", "json", *files], capture_output=True, text=True, timeout=300)
    if p.returncode not in (0, 1):
        raise RuntimeError(f"exit {p.returncode}: {p.stderr.strip()[-200:]}")
    return json.loads(p.stdout), p.returncode


def site(finding):
    s = finding.get("site") or {}
    return f"{os.path.basename(s.get('file') or '?')}:{s.get('line')}"


def judge(name, truth, facts, doc, rc, single, alone):
    want, verdict, findings = truth["verdict"], doc["verdict"], doc["findings"]
    leaks = sorted((f for f in findings if f["kind"] in LEAKS), key=lambda f: -f["bytes"])
    allowed = {want, *truth.get("or", [])}
    if single and name == "legacy_pt":
        allowed |= {"insufficient-data"}
    if want == "leak" and alone:  # one recording may not tell a leak from a cache that is not yet full
        allowed |= {"growing"}
    if verdict not in allowed:
        return f"verdict {verdict!r}, wanted {want!r}; leaks {[(site(f), f['bytes']) for f in leaks[:3]]}"
    if want in ("clean", "fragmentation") and leaks:
        return f"false alarm: {[(site(f), f['bytes']) for f in leaks[:3]]}"
    if (rc == 1) != (verdict not in ("clean", "insufficient-data")) and not (single and verdict == "insufficient-data"):
        return f"exit status {rc} with verdict {verdict!r}"
    if want == "leak" and verdict in LEAKS:
        if not leaks:
            return "no leak finding"
        if facts.get("alloc_lines"):
            if site(leaks[0]) not in facts["alloc_lines"]:
                return f"top leak at {site(leaks[0])}, wanted {facts['alloc_lines']}"
        if "size" in truth and not any(f.get("block_size") == truth["size"] for f in leaks):
            return f"no leak finding of block_size {truth['size']}"
        if "rank" in truth and any(f.get("rank") != truth["rank"] for f in leaks):
            return f"leak blamed on ranks {sorted({f.get('rank') for f in leaks}, key=str)}, wanted {truth['rank']}"
    if want == "reference-cycle":
        hits = [f for f in findings if f["kind"] == "reference-cycle"]
        if not any(site(f) in facts["alloc_lines"] for f in hits):
            return f"cycle finding at {[site(f) for f in hits]}, wanted {facts['alloc_lines']}"
    return None


def main():
    with open(args.truth) as f:
        truths = {k: v for k, v in json.load(f).items() if not k.startswith("_")}
    passed = failed = 0
    for name, truth in truths.items():
        folder = os.path.join(args.data, name)
        files = []
        for root, _, names in os.walk(folder):
            files += [os.path.join(root, n) for n in names if n.endswith(SUFFIXES)]
        files.sort(key=lambda p: (os.path.dirname(p), natural(os.path.basename(p))))
        if name == "clean_epochs_eval":
            files = [f for f in files if "eval_mid" not in f]
        facts_file = next((os.path.join(r, "facts.json") for r, _, n in os.walk(folder) if "facts.json" in n), None)
        facts = {}
        if facts_file:
            with open(facts_file) as f:
                facts = json.load(f)
        runs = [("all", files)] + ([("last", files[-1:])] if len(files) > 1 and "rank" not in truth else [])
        for label, chosen in runs:
            try:
                if not chosen:
                    raise FileNotFoundError(f"no recordings under {folder}")
                doc, rc = run(chosen)
                why = judge(name, truth, facts, doc, rc, label == "last", len(chosen) == 1)
            except Exception as e:
                why = f"{type(e).__name__}: {e}"
            if why:
                failed += 1
                print(f"FAIL {name} ({label}): {why}")
            else:
                passed += 1
                if args.v:
                    print(f"ok   {name} ({label})")
    print(f"{passed} passed, {failed} failed")
    sys.exit(bool(failed))


main()
