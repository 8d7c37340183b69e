#!/usr/bin/env python3
"""Writes recorded/: small directories as `vramscope run` writes them, made by hand.

Snapshots are those of recordings/, statistics their metrics; who holds the memory is
not measured but written here, block by block, from what the programs do. The output
is the same on every run. Usage: make_recorded.py
"""
import json
import os
import pickle
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES = ("parameters", "gradients", "optimizer_state", "activations", "buffers", "user_held", "cycle_garbage", "pending", "cpp_held")
COLUMNS = "step,time_us,device,allocated_bytes,reserved_bytes,active_bytes,requested_bytes,peak_allocated_bytes,peak_reserved_bytes,rss_bytes,source"
STARTED = 1795956970000000


def load(path):
    if path.endswith(".zst"):
        return pickle.loads(subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout)
    with open(path, "rb") as f:
        return pickle.load(f)


def write(path, text):
    path = os.path.join(HERE, "recorded", path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)


def write_json(path, value):
    write(path, json.dumps(value, indent=1) + "\n")


def copy(case, name, to):
    """A snapshot of a case under another name; returns what it holds."""
    path = os.path.join(HERE, "recordings", case, name)
    target = os.path.join(HERE, "recorded", to + name[name.index("."):])
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(path, target)
    return load(path)


def statistics(case, device=0, source="optimizer"):
    rows = [COLUMNS]
    with open(os.path.join(HERE, "recordings", case, "metrics.jsonl")) as f:
        for row in map(json.loads, f):
            values = [row["step"] + 1, round(row["time_s"] * 1e6), device]
            values += [row[k] for k in ("allocated", "reserved", "active", "requested", "peak_allocated", "peak_reserved", "rss")]
            rows.append(",".join(map(str, values + [source])))
    return "\n".join(rows) + "\n"


def environment(command, **more):
    return {
        "vramscope": "0.1.0", "torch": "2.11.0+cu130", "cuda": "13.0", "driver": "580.65.06", "gpus": [{"name": "NVIDIA H200", "total_bytes": 150_111_059_968}],
        "command": command, "started_us": STARTED, "rank": None, "world_size": None,
        "settings": {"PYTORCH_CUDA_ALLOC_CONF": ""}, **more,
    }


def link(object, type, reference="", status="unknown", reason="", suspect=False):
    return {"object": object, "type": type, "reference": reference, "status": status, "reason": reason, "suspect": suspect}


MODULE = ("alive", "a module lives as long as the program")


def holder(path, kind, chain, through=None, fingerprint="000000000000"):
    return {"path": path, "through": through, "class": kind, "bytes": 0, "exclusive_bytes": 0, "blocks": 0, "fingerprint": fingerprint, "chain": chain}


def blocks_of(snapshot):
    """Live blocks: address, size, device and the innermost line of train.py, if any."""
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                lines = [f["line"] for f in block.get("frames", []) if f["filename"].endswith("/train.py")]
                yield block["address"], block["size"], segment["device"], lines[0] if lines else None


def last_us(snapshot):
    return max(trace[-1]["time_us"] for trace in snapshot["device_traces"] if trace)


def holders(snapshot, known, which, **more):
    """The document, where `which` says by its line whose a block is: an index into `known`."""
    held, classes = [], dict.fromkeys(CLASSES, 0)
    for address, size, device, line in sorted(blocks_of(snapshot)):
        of = known[which(line, size)]
        of["bytes"] += size
        of["exclusive_bytes"] += size
        of["blocks"] += 1
        classes[of["class"]] += size
        held.append((address, size, device, of))
    rows = sorted((h for h in known if h["blocks"]), key=lambda h: -h["bytes"])
    return {
        "schema": "vramscope.holders/1", "version": "0.1.0", "time_us": last_us(snapshot) + 2000, "rank": None,
        "devices": sorted({device for _, _, device, _ in held}) or [0], "total_bytes": sum(classes.values()), "classes": classes,
        "holders": rows, "unexplained_bytes": 0,
        "held_blocks": [[address, size, device, rows.index(of)] for address, size, device, of in held],
        "warnings": [], **more,
    }


def leak():
    """val_loss_list: every loss keeps the graph of its step."""
    write_json("leak/environment.json", environment("python train.py --validate"))
    write("leak/statistics.csv", statistics("val_loss_list", source="explicit"))
    events = [{"time_us": STARTED + 6_000_000, "event": "window opened", "why": "allocated bytes grew in each of 8 steps"}]
    write("leak/events.jsonl", "".join(json.dumps(event) + "\n" for event in events))
    for n, (step, name) in enumerate([(25, "step25.pickle.zst"), (40, "step40.pickle.zst")], 1):
        snapshot = copy("val_loss_list", name, f"leak/window{n}")
        to_loss = [link("__main__", "module", ".losses", *MODULE, suspect=True), link(f"list of {step}", "list", "[*]", suspect=True)]
        tensor = link("Tensor [] float32", "Tensor", "grad_fn")
        known = [
            holder("__main__.losses[*]", "activations", to_loss + [
                tensor, link("61 autograd nodes, the last ConvolutionBackward0", "ConvolutionBackward0", "saved input"),
                link("Tensor [4, 64, 24, 24] float32", "Tensor"),
            ], "autograd graph", "6f1d0c2ab94e"),
            holder("__main__.losses[*]", "user_held", to_loss + [link("Tensor [] float32", "Tensor")], None, "0be5a7713c20"),
            holder("__main__.model", "parameters", [
                link("__main__", "module", ".model", *MODULE), link("ResNet", "ResNet", ".layer4", "alive", "a module in use"),
                link("Sequential of 2", "Sequential", ".conv1", "alive", "a module in use"),
                link("Parameter [512, 512, 3, 3] float32", "Parameter", "", "alive", "a parameter of a module"),
            ], None, "a21c90ee4471"),
        ]
        # Of line 12, which computes the loss, every other small block is the loss itself.
        write_json(f"leak/window{n}.holders.json", holders(snapshot, known, lambda line, size: {None: 2, 12: 1}.get(line, 0)))


def cycle():
    """cycle_sawtooth: nodes that refer to themselves wait for the collector."""
    write_json("cycle/environment.json", environment("python train.py"))
    write("cycle/statistics.csv", statistics("cycle_sawtooth", source="explicit"))
    for n, name in enumerate(["step79.pickle", "step120.pickle.zst"], 1):
        snapshot = copy("cycle_sawtooth", name, f"cycle/window{n}")
        gone = ("dead", "nothing that is alive refers to it")
        node = [link("Node", "Node", ".me", *gone, suspect=True), link("Node", "Node", ".payload", *gone), link("Tensor [256, 1024] float32", "Tensor", "", *gone)]
        known = [holder("unreachable: Node.me", "cycle_garbage", node, None, "93b1f6a80d57")]
        write_json(f"cycle/window{n}.holders.json", holders(snapshot, known, lambda line, size: 0))


def ranks():
    """ddp_one_rank: only rank 1 keeps what it logs."""
    write_json("ranks/environment.json", environment("torchrun --nproc-per-node=2 train.py", world_size=2, gpus=[{"name": "NVIDIA H200", "total_bytes": 150_111_059_968}] * 2))
    for rank in (0, 1):
        write(f"ranks/rank{rank}/statistics.csv", statistics(f"ddp_one_rank/rank{rank}", rank))
        snapshot = copy(f"ddp_one_rank/rank{rank}", "step60.pickle.zst", f"ranks/rank{rank}/window1")
        known = [
            holder("__main__.logged[*]", "user_held", [
                link("__main__", "module", ".logged", *MODULE, suspect=True), link("list of 60", "list", "[*]", suspect=True),
                link("Tensor [64, 512] float32", "Tensor"),
            ], None, "51d0a9be7f34"),
            holder("__main__.model", "parameters", [
                link("__main__", "module", ".model", *MODULE), link("DistributedDataParallel", "DistributedDataParallel", ".module", "alive", "a module in use"),
                link("Parameter [2048, 512] float32", "Parameter", "", "alive", "a parameter of a module"),
            ], None, "e8860b3d2c19"),
            holder("C++ (no Python object)", "cpp_held", [], None, ""),
        ]
        which = lambda line, size: 2 if line is None and size > 8 << 20 else 1 if line is None else 0
        write_json(f"ranks/rank{rank}/window1.holders.json", holders(snapshot, known, which, rank=rank))


def cpu():
    """A run without a GPU: no snapshot, but one list holds more each time."""
    write_json("cpu/environment.json", environment("python train.py", gpus=[], cuda=None, driver=None, settings={}))
    rows = [f"{step},{STARTED + step * 100_000},cpu,,,,,,,{(900 << 20) + (step << 18)},explicit" for step in range(1, 61)]
    write("cpu/statistics.csv", "\n".join([COLUMNS] + rows) + "\n")
    for n, step in enumerate([20, 40, 60], 1):
        known = [
            holder("__main__.history[*]", "user_held", [
                link("__main__", "module", ".history", *MODULE, suspect=True), link(f"list of {step}", "list", "[*]", suspect=True),
                link("Tensor [256, 256] float32", "Tensor"),
            ], None, "c3b27d915e60"),
            holder("__main__.model", "parameters", [
                link("__main__", "module", ".model", *MODULE), link("Linear", "Linear", ".weight", "alive", "a module in use"),
                link("Parameter [1024, 1024] float32", "Parameter", "", "alive", "a parameter of a module"),
            ], None, "7a0f34d2b8c1"),
        ]
        known[0].update(bytes=step << 18, exclusive_bytes=step << 18, blocks=step)
        known[1].update(bytes=4 << 20, exclusive_bytes=4 << 20, blocks=1)
        known.sort(key=lambda h: -h["bytes"])
        classes = {**dict.fromkeys(CLASSES, 0), "user_held": step << 18, "parameters": 4 << 20}
        write_json(f"cpu/window{n}.holders.json", {
            "schema": "vramscope.holders/1", "version": "0.1.0", "time_us": STARTED + step * 100_000 + 5000, "rank": None, "devices": [],
            "total_bytes": sum(classes.values()), "classes": classes, "holders": known, "unexplained_bytes": 0,
            "held_blocks": [[(step << 20) + (i << 18), 1 << 18, None, known.index(next(h for h in known if h["class"] == "user_held"))] for i in range(step)],
            "warnings": [],
        })


def crash():
    """A run that was killed while it wrote: nothing is whole, and a later version wrote more columns."""
    text = statistics("feature_pyramid").replace(",source\n", ",source,temperature\n", 1)
    lines = [text.splitlines()[0]] + [line + ",41" for line in text.splitlines()[1:31]]
    write("crash/statistics.csv", "\n".join(lines)[:-12])
    write("crash/environment.json", json.dumps(environment("python train.py"), indent=1)[:120])
    write("crash/window1.holders.json", json.dumps({"schema": "vramscope.holders/1", "total_bytes": 7, "classes": dict.fromkeys(CLASSES, 0)})[:90])


def main():
    for case in (leak, cycle, ranks, cpu, crash):
        shutil.rmtree(os.path.join(HERE, "recorded", case.__name__), ignore_errors=True)
        case()


if __name__ == "__main__":
    main()
