"""What a program of this folder reports: `start()` before the first allocation (or later), `step(i)` after each iteration.

CASE_OUT is where facts.json goes, CASE_FRACTION the memory fraction, CASE_RECORD=1 keeps a recording beside the facts.
A program that runs out of memory ends, and the facts say where.
"""
import json
import os
import sys

import torch

device = os.environ.get("CASE_DEVICE", "cuda")
_on_gpu = device == "cuda"
_steps = []


def _counters():
    return torch.cuda.memory_stats() if _on_gpu else {}


def begin():
    """The seed and the limit; call it before anything is on the device."""
    torch.manual_seed(0)
    if _on_gpu:
        torch.cuda.init()
        if os.environ.get("CASE_FRACTION"):
            torch.cuda.set_per_process_memory_fraction(float(os.environ["CASE_FRACTION"]))
    sys.excepthook = _ended


def record():
    """The recording begins here."""
    if _on_gpu and os.environ.get("CASE_RECORD"):
        torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python", context="all")


def start():
    begin()
    record()


def step(i):
    if _on_gpu:
        torch.cuda.synchronize()
    _steps.append(_counters().get("reserved_bytes.all.current", 0))


def done(oom=None):
    s, out = _counters(), os.environ.get("CASE_OUT", ".")
    os.makedirs(out, exist_ok=True)
    if _on_gpu and os.environ.get("CASE_RECORD"):
        torch.cuda.memory._dump_snapshot(os.path.join(out, "final.pickle"))
    facts = {"conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""),
             "peak_reserved": s.get("reserved_bytes.all.peak"), "peak_allocated": s.get("allocated_bytes.all.peak"),
             "final_reserved": s.get("reserved_bytes.all.current"), "final_allocated": s.get("allocated_bytes.all.current")}
    facts.update({k: s.get(k) for k in ("num_device_alloc", "num_device_free", "num_alloc_retries", "num_ooms", "num_sync_all_streams")})
    facts.update(requests=s.get("allocation.all.allocated"), requested_bytes=s.get("requested_bytes.all.allocated"))
    if os.environ.get("CASE_FRACTION"):
        facts["memory_fraction"] = float(os.environ["CASE_FRACTION"])
    if oom:
        facts["out_of_memory"] = {"after_steps": len(_steps), "message": oom}
    facts["reserved_by_step"] = _steps
    with open(os.path.join(out, "facts.json"), "w") as file:
        json.dump(facts, file)


def _ended(kind, error, trace):
    if issubclass(kind, torch.OutOfMemoryError):
        done(str(error))
    else:
        sys.__excepthook__(kind, error, trace)
