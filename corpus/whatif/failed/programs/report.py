"""What a program of this folder reports. `begin()` before anything is on the device, `step(i)` after each iteration, `done()` at the end.

CASE_OUT is where facts.json goes. The limit is CASE_FRACTION, a memory fraction, or CASE_LEAVE_MIB: so much of the device is left, the rest is
taken behind the allocator's back. With CASE_RECORD=1 the program records its history and `dump()` writes the snapshot.

Every request that fails is written down by an observer, caught or not; `requests` counts those served before it.
"""
import json
import os
import re

import torch

device = os.environ.get("CASE_DEVICE", "cuda")
recording = bool(os.environ.get("CASE_RECORD"))
_out, _on_gpu = os.environ.get("CASE_OUT", "."), device == "cuda"
_steps, _failures, _facts = [], [], {}


def _counters():
    return torch.cuda.memory_stats() if _on_gpu else {}


def _take_all_but(leave):
    import ctypes
    driver, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
    size = (torch.cuda.mem_get_info()[0] - leave) // (2 << 20) * (2 << 20)
    assert driver.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)) == 0
    _facts.update(taken=size, left=torch.cuda.mem_get_info()[0])


def _failed(device, asked, total, free):
    s = _counters()
    _failures.append({"after_steps": len(_steps), "requests": s["allocation.all.allocated"], "device_asked": asked, "device_free": free, "reserved": s["reserved_bytes.all.current"], "allocated": s["allocated_bytes.all.current"]})


def begin():
    torch.manual_seed(0)
    os.makedirs(_out, exist_ok=True)
    if not _on_gpu:
        return
    torch.cuda.init()
    torch.cuda._sleep(1000)  # loads a kernel: the context is complete now
    if os.environ.get("CASE_FRACTION"):
        torch.cuda.set_per_process_memory_fraction(float(os.environ["CASE_FRACTION"]))
        _facts["memory_fraction"] = float(os.environ["CASE_FRACTION"])
    if os.environ.get("CASE_LEAVE_MIB"):
        _take_all_but(int(os.environ["CASE_LEAVE_MIB"]) << 20)
    torch._C._cuda_attach_out_of_memory_observer(_failed)


def record(**how):
    if _on_gpu and recording:
        torch.cuda.memory._record_memory_history(stacks="python", context="all", **how)


def dump():
    if _on_gpu and recording:
        torch.cuda.memory._dump_snapshot(os.path.join(_out, "oom.pickle"))


def step(i):
    if _on_gpu:
        torch.cuda.synchronize()
    _steps.append(_counters().get("reserved_bytes.all.current", 0))


def done(error=None):
    s = _counters()
    facts = {"conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""), "survives": error is None, "steps": len(_steps), **_facts}
    facts.update({name: s.get(f"{key}_bytes.all.{when}") for key in ("reserved", "allocated") for name, when in ((f"peak_{key}", "peak"), (f"final_{key}", "current"))})
    facts.update({k: s.get(k) for k in ("num_device_alloc", "num_device_free", "num_alloc_retries", "num_ooms")})
    facts.update(requests=s.get("allocation.all.allocated"), requested_bytes=s.get("requested_bytes.all.allocated"), failures=_failures, reserved_by_step=_steps)
    if error is not None:
        text = str(error).split(" If reserved but unallocated")[0]
        facts["message"] = re.sub(r"Process \d+ has [\d.]+ [KMG]iB memory in use\. ", "", text)
    with open(os.path.join(_out, "facts.json"), "w") as file:
        json.dump(facts, file)
