#!/usr/bin/env python3
"""Writes expected.json: what a correct reader must find in every snapshot of the corpus.

Reads with Python's own pickle, json, zipfile, gzip and lzma, and with the
`zstd` command, so that the figures owe nothing to the code they test.
`pickle.load` runs what a file tells it to run: only ever use this on the
corpus itself. Usage: make_expected.py [-v]   (-v: report metrics that disagree)

Conventions of expected.json:
  addresses are unsigned 64-bit (a C++ writer's negative ones are wrapped back);
  devices without segments and without entries are left out;
  distinct_stacks counts an empty `frames` list as one stack;
  metrics is the row of metrics.jsonl at the snapshot's moment, else null.
"""
import collections
import gzip
import io
import json
import lzma
import os
import pickle
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
U64 = (1 << 64) - 1
SUFFIXES = (".pickle", ".pt", ".json", ".pickle.zst", ".pickle.gz", ".pickle.xz", ".json.zst")


def is_snapshot(path):
    name = os.path.basename(path)
    # Beside recordings, `whatif` has what was measured, and `recorded` what the recorder writes.
    is_mixed = "/whatif/" in path or "/recorded/" in path
    suffixes = SUFFIXES if not is_mixed else tuple(s for s in SUFFIXES if s != ".json")
    return name.endswith(suffixes) and name not in ("facts.json", "truth.json") and not name.endswith(".host.json")


def load(path):
    if path.endswith(".zst"):
        raw = subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout
    else:
        opener = gzip.open if path.endswith(".gz") else lzma.open if path.endswith(".xz") else open
        with opener(path, "rb") as f:
            raw = f.read()
    if raw[:1] in b"{[":
        return json.loads(raw)
    if raw[:2] == b"PK":
        archive = zipfile.ZipFile(io.BytesIO(raw))
        raw = archive.read(next(n for n in archive.namelist() if n.endswith("/data.pkl")))
    return pickle.loads(raw)


def metrics_row(path):
    """The row of metrics.jsonl that was written right before the snapshot, if nothing ran in between."""
    folder, name = os.path.split(path)
    file = os.path.join(folder, "metrics.jsonl")
    if not os.path.exists(file):
        return None
    case, stem = os.path.basename(folder), name.split(".")[0]
    number = re.search(r"(\d+)$", stem)
    if not number or stem.startswith("eval_mid"):  # taken inside evaluate(), between two rows
        return None
    n = int(number[1])
    if stem.startswith("snapshot_"):
        step = n
    elif stem.startswith("step"):
        step = n - 1
    elif case == "clean_epochs_eval":  # 15 training rows and one evaluation row an epoch
        step = 16 * n + 15
    elif case == "target_masks":  # 64 samples in batches of 4
        step = 16 * n + 15
    else:
        return None
    with open(file) as f:
        rows = [json.loads(line) for line in f]
    row = next(r for r in rows if r["step"] == step)
    return {k: row[k] for k in ("allocated", "reserved", "active", "requested", "inactive_split")}


def requested(block):
    """What a block was asked for with; torch 1.13 keeps it in the newest record of the block's history."""
    if "requested_size" in block:
        return block["requested_size"]
    return block["history"][0]["real_size"] if block.get("history") else None


def summarise(path):
    snap = load(path)
    if isinstance(snap, list):
        snap = {"segments": snap}
    segments, traces = snap["segments"], snap.get("device_traces", [])
    devices = {}
    for d in sorted({s["device"] for s in segments} | {i for i, t in enumerate(traces) if t}):
        mine = [s for s in segments if s["device"] == d]
        blocks = [b for s in mine for b in s["blocks"]]
        trace = traces[d] if d < len(traces) else []
        in_state = lambda state: sum(b["size"] for b in blocks if b["state"] == state)
        live = [b for b in blocks if b["state"] == "active_allocated"]
        times = [e["time_us"] for e in trace if "time_us" in e]
        addrs = [e["addr"] & U64 for e in trace if "addr" in e]
        # A stack shared by many entries is one list object; look at each only once.
        lists = {id(e["frames"]): e["frames"] for e in trace if "frames" in e}
        devices[str(d)] = {
            "events": dict(collections.Counter(e["action"] for e in trace)),
            "reserved": sum(s["total_size"] for s in mine),
            "allocated": in_state("active_allocated"),
            "pending": in_state("active_pending_free"),
            "inactive": in_state("inactive"),
            "requested": None if None in map(requested, live) else sum(map(requested, live)),
            "segments": len(mine),
            "small_segments": sum(s.get("segment_type") == "small" for s in mine),
            "large_segments": sum(s.get("segment_type") == "large" for s in mine),
            "first_us": min(times, default=None),
            "last_us": max(times, default=None),
            "distinct_stacks": len({tuple((f["filename"], f["line"], f["name"]) for f in frames) for frames in lists.values()}),
            "entries_without_frames": sum(not e.get("frames") for e in trace),
            "sum_alloc_sizes": sum(e["size"] for e in trace if e["action"] == "alloc"),
            "sum_free_completed_sizes": sum(e["size"] for e in trace if e["action"] == "free_completed"),
            "min_addr": min(addrs, default=None),
            "max_addr": max(addrs, default=None),
        }
    return {
        "segments": len(segments),
        "blocks": sum(len(s["blocks"]) for s in segments),
        "devices": devices,
        "annotations": len(snap.get("external_annotations", [])),
        "settings": snap.get("allocator_settings"),
        "host": {"segments": len(snap["host_segments"]), "events": len(snap["host_traces"])} if "host_segments" in snap else None,
        "metrics": metrics_row(path),
    }


def disagreements(path, summary):
    """Where the metrics row and the blocks differ. Each process used one device."""
    row = summary["metrics"]
    if not row:
        return []
    total = lambda key: sum(d[key] or 0 for d in summary["devices"].values())
    snap = load(path)
    segments = snap if isinstance(snap, list) else snap["segments"]
    blocks = [b for s in segments for b in s["blocks"]]
    found = {
        "allocated": total("allocated"),
        "reserved": total("reserved"),
        "active": total("allocated") + total("pending"),
        "requested": sum(b["requested_size"] for b in blocks if b["state"] != "inactive"),
        "inactive_split": sum(b["size"] for s in segments if len(s["blocks"]) > 1 and not s["is_expandable"] for b in s["blocks"] if b["state"] == "inactive"),
    }
    return [f"{k}: metrics {row[k]}, blocks {found[k]}" for k in found if found[k] != row[k]]


def main():
    expected = {}
    for sub in ("recordings", "recorded", "large", "older", "more", "whatif"):
        for root, _, names in os.walk(os.path.join(HERE, sub)):
            for path in (os.path.join(root, n) for n in names):
                if is_snapshot(path):
                    key = os.path.relpath(path, HERE).replace(os.sep, "/")
                    expected[key] = summarise(path)
                    if "-v" in sys.argv:
                        for line in disagreements(path, expected[key]):
                            print(f"{key}: {line}")
    with open(os.path.join(HERE, "expected.json"), "w") as f:
        # One line for each snapshot.
        lines = (f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(expected.items()))
        f.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(expected)} snapshots")


if __name__ == "__main__":
    main()
