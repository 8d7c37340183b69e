#!/usr/bin/env python3
"""Writes older/: small snapshots in the schemas of older and of unusual writers.

No recording of these exists in the corpus, so a toy of the caching allocator
runs a toy training loop and the result is written the way each release wrote
it. The output is the same on every run. Usage: make_older.py [DIR]

Known from the releases' headers and sources: key names, key presence, action
names, value meanings. Guessed, because no file of the kind was at hand: the
element keys of `host_segments` (2.14, taken from the C++ struct) and what
surrounds `workspace_snapshot` (torch_npu).
"""
import os
import pickle
import struct
import sys

KiB, MiB = 1 << 10, 1 << 20
U64 = (1 << 64) - 1
TRAIN = "/app/train.py"
SITE = "/usr/lib/python3/dist-packages/torch/"

# --- stacks: frame dicts and stack lists are shared objects, as in real files

_frames, _stacks = {}, {}


def stack(*frames):
    """Each frame is (filename, line, name), innermost first."""
    if frames not in _stacks:
        _stacks[frames] = [_frames.setdefault(f, {"name": f[2], "filename": f[0], "line": f[1]}) for f in frames]
    return _stacks[frames]


MAIN = (TRAIN, 48, "<module>")
CALL = (SITE + "nn/modules/module.py", 1501, "_call_impl")
LINEAR = (SITE + "nn/modules/linear.py", 114, "forward")
S = {
    "build": stack((SITE + "nn/modules/linear.py", 96, "__init__"), (TRAIN, 12, "__init__"), (TRAIN, 33, "<module>")),
    "batch": stack((TRAIN, 38, "step"), MAIN),
    "hidden": stack(LINEAR, CALL, (TRAIN, 18, "forward"), CALL, (TRAIN, 39, "step"), MAIN),
    "relu": stack((SITE + "nn/functional.py", 1457, "relu"), (TRAIN, 19, "forward"), CALL, (TRAIN, 39, "step"), MAIN),
    "loss": stack((SITE + "nn/functional.py", 3053, "cross_entropy"), (TRAIN, 40, "step"), MAIN),
    "autograd": stack(),  # the backward thread has no Python frames
    "momentum": stack((SITE + "optim/sgd.py", 233, "_single_tensor_sgd"), (SITE + "optim/sgd.py", 76, "step"), (TRAIN, 42, "step"), MAIN),
    "update": stack((SITE + "optim/sgd.py", 241, "_single_tensor_sgd"), (SITE + "optim/sgd.py", 76, "step"), (TRAIN, 42, "step"), MAIN),
    "zero": stack((SITE + "optim/optimizer.py", 488, "zero_grad"), (TRAIN, 37, "step"), MAIN),
    "end": stack((TRAIN, 45, "step"), MAIN),
    "kept": stack((TRAIN, 44, "step"), MAIN),
    "empty_cache": stack((SITE + "cuda/memory.py", 133, "empty_cache"), (TRAIN, 50, "<module>")),
    "huge": stack((TRAIN, 53, "<module>")),
}

# --- the allocator


class Block:
    def __init__(self, address, size):
        self.address, self.size, self.requested = address, size, 0
        self.state, self.frames, self.history, self.mapped = "inactive", None, [], True


class Segment:
    def __init__(self, address, size, kind, stream, pool, frames):
        self.address, self.kind, self.stream, self.pool, self.frames = address, kind, stream, pool, frames
        self.blocks, self.end = [Block(address, size)], address + size


def round_up(n, unit):
    return -(-n // unit) * unit


class Allocator:
    """Best fit in 2 MiB / 20 MiB segments, split and merge, optionally expandable."""

    def __init__(self, base=0x7F2C40000000, expandable=False, recording=True):
        self.next, self.expandable, self.recording = base, expandable, recording
        self.segments, self.events, self.holes = [], [], []
        self.now, self.compile_context, self.metadata = 1_720_000_000_000_000, "N/A", ""

    def note(self, action, addr, size, stream=0, frames=None, pool=(0, 0), **more):
        self.now += 7 + (len(self.events) * 13) % 31
        if self.recording:
            self.events.append(dict(action=action, addr=addr, size=size, stream=stream, frames=frames, time_us=self.now, pool_id=pool, compile_context=self.compile_context, user_metadata=self.metadata, **more))

    def alloc(self, size, frames, stream=0, pool=(0, 0)):
        rounded = round_up(max(size, 1), 512)
        kind = "small" if rounded <= MiB else "large"
        here = [s for s in self.segments if (s.kind, s.stream, s.pool) == (kind, stream, pool)]
        fits = [(b.size, b.address, s, b) for s in here for b in s.blocks if b.mapped and b.state == "inactive" and b.size >= rounded]
        if fits:
            _, _, seg, block = min(fits, key=lambda f: f[:2])
        else:
            seg, block = self.grow(here, rounded, kind, stream, pool, frames)
        rest = block.size - rounded
        if rest >= 512 if kind == "small" or self.expandable else rest > MiB:
            tail = Block(block.address + rounded, rest)
            tail.history = [h for h in block.history if h["addr"] >= tail.address]
            seg.blocks.insert(seg.blocks.index(block) + 1, tail)
            block.size = rounded
            seg.frames = None  # the head block is a new one after a split and forgets the segment's stack
        block.requested, block.state, block.frames = size, "active_allocated", frames
        if self.recording:
            kept = [h for h in block.history if block.address + rounded <= h["addr"] < block.address + block.size]
            block.history = [{"addr": block.address, "real_size": size, "frames": frames}] + kept
        self.note("alloc", block.address, size, stream, frames, pool)
        return block.address

    def grow(self, here, rounded, kind, stream, pool, frames):
        unit = 2 * MiB if kind == "small" else 20 * MiB
        if not self.expandable:
            size = unit if rounded < 10 * MiB else round_up(rounded, 2 * MiB)
            hole = next((h for h in self.holes if h[1] == size), None)
            if hole:
                self.holes.remove(hole)
                address = hole[0]
            else:
                address, self.next = self.next, self.next + size
            seg = Segment(address, size, kind, stream, pool, frames)
            self.segments.append(seg)
            self.note("segment_alloc", address, size, stream, frames, pool)
            return seg, seg.blocks[0]
        if here:
            seg = here[0]
        else:
            seg = Segment(self.next, 0, kind, stream, pool, frames)
            seg.blocks, self.next = [], self.next + 1024 * MiB  # reserved addresses, nothing mapped
            self.segments.append(seg)
        last = seg.blocks[-1] if seg.blocks and seg.blocks[-1].mapped and seg.blocks[-1].state == "inactive" else None
        size = round_up(rounded - (last.size if last else 0), unit)
        self.note("segment_map", seg.end, size, stream, frames, pool)
        if last:
            last.size += size
        else:
            last = Block(seg.end, size)
            seg.blocks.append(last)
        seg.end += size
        return seg, last

    def find(self, address):
        return next((s, b) for s in self.segments for b in s.blocks if b.address == address and b.state != "inactive")

    def free(self, address, frames, deferred=False):
        seg, block = self.find(address)
        self.note("free_requested", address, block.requested, seg.stream, frames, seg.pool)
        block.state = "active_pending_free"
        if not deferred:
            self.complete(address, frames)

    def complete(self, address, frames):
        seg, block = self.find(address)
        self.note("free_completed", address, block.requested, seg.stream, frames, seg.pool)
        block.state, block.frames = "inactive", None  # requested keeps its stale value, as in real files
        i = seg.blocks.index(block)
        for j in (i + 1, i - 1):  # merge with the right, then with the left neighbour
            if 0 <= j < len(seg.blocks) and seg.blocks[j].state == "inactive" and seg.blocks[j].mapped:
                other = seg.blocks[j]
                low = min(block.address, other.address)
                block.history += other.history
                block.address, block.size = low, block.size + other.size
                seg.blocks.remove(other)

    def empty_cache(self, frames):
        for seg in list(self.segments):
            unit = 2 * MiB if seg.kind == "small" else 20 * MiB
            if not self.expandable:
                if all(b.state == "inactive" for b in seg.blocks):
                    self.segments.remove(seg)
                    self.holes.append((seg.address, seg.end - seg.address))
                    self.note("segment_free", seg.address, seg.end - seg.address, seg.stream, frames, seg.pool)
                continue
            for block in [b for b in seg.blocks if b.mapped and b.state == "inactive"]:
                low = seg.address + round_up(block.address - seg.address, unit)
                high = seg.address + (block.address + block.size - seg.address) // unit * unit
                if low >= high:
                    continue
                parts = [Block(a, z - a) for a, z in ((block.address, low), (low, high), (high, block.address + block.size)) if z > a]
                next(p for p in parts if p.address == low).mapped = False
                i = seg.blocks.index(block)
                seg.blocks[i : i + 1] = parts
                self.note("segment_unmap", low, high - low, seg.stream, frames, seg.pool)
            while seg.blocks and not seg.blocks[-1].mapped:
                seg.end = seg.blocks.pop().address

    def oom(self, size, frames, device_free):
        self.note("oom", None, size, 0, frames, device_free=device_free)

    def snapshot_taken(self):
        active = sum(b.size for s in self.segments for b in s.blocks if b.state != "inactive")
        self.note("snapshot", 0, active)


# --- the program


def train(a, leak=True, steps=12, stream=0, pool=(0, 0)):
    """Yields after each step; a leaky loop keeps one 1 MiB block a step."""
    weights = [4 * MiB, 4096, 4 * MiB, 40]
    for size in weights:
        a.alloc(size, S["build"])
    for i in range(steps):
        batch = a.alloc(64 * 1024 * 4, S["batch"])
        hidden = a.alloc(MiB, S["hidden"], stream, pool)
        relu = a.alloc(1_000_000, S["relu"])
        loss = a.alloc(4, S["loss"])
        work = a.alloc(3_000_000, S["autograd"])
        grads = [a.alloc(size, S["autograd"]) for size in weights]
        a.free(work, S["autograd"])
        a.free(relu, S["autograd"])
        if i == 0:
            for size in weights:
                a.alloc(size, S["momentum"])
        temp = a.alloc(4 * MiB, S["update"])
        a.free(temp, S["update"])
        for g in grads:
            a.free(g, S["zero"])
        for live in (batch, loss):
            a.free(live, S["end"])
        if not leak:
            a.free(hidden, S["end"])
        yield i


# --- the schemas


def block_dict(b, v, record):
    d = {}
    if v >= (2, 1):
        d["address"] = b.address
    d["size"] = b.size
    if v >= (2, 0):
        d["requested_size"] = b.requested
    d["state"] = b.state
    if v >= (2, 1):
        d["frames"] = b.frames or []
    elif v >= (1, 13) and record and b.history:
        d["history"] = b.history
    return d


def segment_dicts(a, v, device, record=True):
    out = []
    for seg in a.segments:
        runs, run = [], []
        for b in seg.blocks + [None]:
            if b is None or not b.mapped:
                runs, run = runs + [run] * bool(run), []
            else:
                run.append(b)
        for run in runs:
            total = lambda *states: sum(b.size for b in run if b.state in states)
            d = {"device": device, "address": run[0].address, "total_size": sum(b.size for b in run), "allocated_size": total("active_allocated"), "active_size": total("active_allocated", "active_pending_free")}
            if v >= (2, 0):
                d["requested_size"] = sum(b.requested for b in run if b.state != "inactive")
            if v >= (1, 13):
                d["stream"] = seg.stream
            d["segment_type"] = seg.kind
            if v >= (2, 1):
                d["segment_pool_id"], d["is_expandable"] = seg.pool, a.expandable
                d["frames"] = [] if a.expandable else seg.frames or []
            d["blocks"] = [block_dict(b, v, record) for b in run]
            out.append(d)
    return sorted(out, key=lambda s: s["address"])


def event_dict(e, v):
    d = {"action": e["action"]}
    d["device_free" if e["action"] == "oom" else "addr"] = e["device_free"] if e["action"] == "oom" else e["addr"]
    d["size"], d["stream"] = e["size"], e["stream"]
    for key, since in (("time_us", (2, 2)), ("compile_context", (2, 8)), ("user_metadata", (2, 10)), ("pool_id", (2, 12))):
        if v >= since:
            d[key] = e[key]
    for key, since in (("internal_metadata", (2, 15)), ("forward_frames", (2, 11))):
        if v >= since and e.get(key):
            d[key] = e[key]
    if e["frames"] is not None:
        d["frames"] = e["frames"]
    return d


def settings(v, conf=""):
    d = {"PYTORCH_CUDA_ALLOC_CONF": conf, "max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": "expandable_segments:True" in conf, "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False, "pinned_use_cuda_host_register": False}
    if v >= (2, 9):
        d["graph_capture_record_stream_reuse"] = False
    if v >= (2, 13):
        d["max_round_threshold"], d["max_cached_size"] = 0, 0
    d["roundup_power2_divisions"] = {str(1 << i): 0 for i in range(16)}
    return d


def snapshot(devices, v, annotations=(), conf="", **more):
    if isinstance(devices, Allocator):
        devices = [devices]
    segments = [s for i, a in enumerate(devices) for s in segment_dicts(a, v, i, a.recording)]
    if v < (2, 0):
        return segments
    d = {"segments": segments, "device_traces": [[event_dict(e, v) for e in a.events] for a in devices]}
    if v >= (2, 3):
        d["allocator_settings"] = settings(v, conf)
    if v >= (2, 5):
        d["external_annotations"] = list(annotations)
    d.update(more)
    return d


# --- the checks every sample must pass


def check(name, snap):
    segments = snap if isinstance(snap, list) else snap["segments"]
    live = {}
    for s in segments:
        at = s["address"]
        for b in s["blocks"]:
            assert b.get("address", at) == at, name
            if b["state"] == "active_allocated":
                live[s["device"], at] = b["size"]
            elif b["state"] == "active_pending_free":
                live[s["device"], at] = None
            at += b["size"]
        assert at == s["address"] + s["total_size"], f"{name}: blocks do not tile {s['address']:#x}"
    if isinstance(snap, list):
        return
    for device, trace in enumerate(snap["device_traces"]):
        seen, mapped = {}, 0
        for e in trace:
            act, addr = e["action"], e.get("addr")
            if act == "alloc":
                assert seen.get(addr) is None, f"{name}: {addr:#x} allocated twice"
                seen[addr] = e["size"]
            elif act == "free_completed":
                seen[addr] = None
            elif act in ("segment_alloc", "segment_map"):
                mapped += e["size"]
            elif act in ("segment_free", "segment_unmap"):
                mapped -= e["size"]
        if mapped and all(addr in seen for d, addr in live if d == device):
            reserved = sum(s["total_size"] for s in segments if s["device"] == device)
            assert mapped == reserved, f"{name}: trace maps {mapped}, segments hold {reserved}"
        for addr, size in seen.items():
            if size is None:
                assert live.get((device, addr)) is None, f"{name}: freed {addr:#x} is live"
            else:
                rest = live.get((device, addr), "gone")
                assert rest is None or rest != "gone" and rest >= size, f"{name}: {addr:#x} should be live"


# --- the writers


def canonical(obj, memo=None, strings=None):
    """Equal strings become one object, so that the pickles do not depend on interning."""
    memo, strings = ({}, {}) if memo is None else (memo, strings)
    if isinstance(obj, str):
        return strings.setdefault(obj, obj)
    if id(obj) in memo:
        return memo[id(obj)][0]
    if isinstance(obj, list):
        out = []
        memo[id(obj)] = (out, obj)
        out += [canonical(x, memo, strings) for x in obj]
    elif isinstance(obj, dict):
        out = {}
        memo[id(obj)] = (out, obj)
        out.update((canonical(k, memo, strings), canonical(x, memo, strings)) for k, x in obj.items())
    else:
        out = obj
    return out


def cpp_pickle(obj):
    """The layout of torch::jit::Pickler: protocol 2, no framing, one MARK for a whole list, 8-byte LONG1."""
    uses, out, memo = {}, [b"\x80\x02"], {}

    def count(x):
        if isinstance(x, (list, dict)):
            uses[id(x)] = uses.get(id(x), 0) + 1
            if uses[id(x)] == 1:
                for y in x.values() if isinstance(x, dict) else x:
                    count(y)

    def put(key):
        n = memo[key] = len(memo)
        out.append(b"q" + bytes([n]) if n < 256 else b"r" + struct.pack("<I", n))

    def get(key):
        n = memo[key]
        out.append(b"h" + bytes([n]) if n < 256 else b"j" + struct.pack("<I", n))

    def push(x):
        key = x if isinstance(x, str) else id(x)
        if isinstance(x, (str, list, dict)) and key in memo:
            return get(key)
        if isinstance(x, str):
            raw = x.encode()
            out.append(b"X" + struct.pack("<I", len(raw)) + raw)
            put(key)
        elif isinstance(x, bool):
            out.append(b"\x88" if x else b"\x89")
        elif isinstance(x, float):
            out.append(b"G" + struct.pack(">d", x))
        elif isinstance(x, int):
            if x >= 1 << 63:
                x -= 1 << 64  # static_cast<int64_t>
            if 0 <= x < 256:
                out.append(b"K" + bytes([x]))
            elif 0 <= x < 65536:
                out.append(b"M" + struct.pack("<H", x))
            elif -(1 << 31) <= x < 1 << 31:
                out.append(b"J" + struct.pack("<i", x))
            else:
                out.append(b"\x8a\x08" + struct.pack("<q", x))
        elif isinstance(x, tuple):
            for y in x:
                push(y)
            out.append({1: b"\x85", 2: b"\x86", 3: b"\x87"}[len(x)])
        elif isinstance(x, list):
            out.append(b"](")
            for y in x:
                push(y)
            out.append(b"e")
            if uses[key] > 1:
                put(key)
        elif isinstance(x, dict):
            out.append(b"}(")
            for k, y in x.items():
                push(k)
                push(y)
            out.append(b"u")
            if uses[key] > 1:
                put(key)
        else:
            raise TypeError(type(x))

    count(obj)
    push(obj)
    return b"".join(out) + b"."


# --- the samples


def finish(gen):
    for _ in gen:
        pass


def annotated(a, leak=True):
    """A run with a START/END pair a step, in the form of 2.5's external_annotations."""
    notes = []
    run = train(a, leak)
    for i in range(12):
        notes.append({"stage": "START", "name": f"step {i}", "device": 0, "time_us": a.now + 1})
        next(run)
        notes.append({"stage": "END", "name": f"step {i}", "device": 0, "time_us": a.now + 1})
    return notes


def samples():
    # 1.12: nothing but sizes and states. 1.13: history of each block.
    for v, protocol in (((1, 12), 3), ((1, 13), 4)):
        a = Allocator()
        for i in train(a):
            if i in (3, 11):
                yield f"torch{v[0]}.{v[1]}_step{i + 1}", snapshot(a, v), protocol

    # 2.0: ends in an out-of-memory error, and an earlier dump left its mark in the trace.
    a = Allocator()
    for i in train(a):
        if i == 5:
            a.snapshot_taken()
    a.empty_cache(S["huge"])
    a.oom(96 * 1024 * MiB, S["huge"], 21_474_836_480)
    yield "torch2.0_oom", snapshot(a, (2, 0)), 4

    # 2.1: expandable segments, with a cache flush that splits a range.
    a = Allocator(base=0x302000000, expandable=True)
    held = [a.alloc(size * MiB, S["build"]) for size in (30, 50, 50)]
    for i in train(a):
        if i == 7:
            a.free(held[1], S["empty_cache"])
            a.empty_cache(S["empty_cache"])
    yield "torch2.1_expandable", snapshot(a, (2, 1)), 4

    # 2.3: nothing leaks; record_stream leaves two blocks waiting for their free.
    a = Allocator()
    finish(train(a, leak=False))
    for size in (6 * MiB, 700_000):
        a.free(a.alloc(size, S["batch"], stream=94_301_884_555_712), S["end"], deferred=True)
    yield "torch2.3_pending", snapshot(a, (2, 3)), 4

    # Nightlies of mid-2024: annotations as trace entries of their own.
    a = Allocator()
    run = train(a)
    for i in range(12):
        for stage in ("START", "END"):
            if stage == "END":
                next(run)
            a.note("user_defined", 0, 0, frames=[{"name": stage, "filename": f"step {i}", "line": 0}])
    yield "nightly2024_user_defined", snapshot(a, (2, 4)), 4

    # 2.5: external_annotations; the same file in every protocol.
    a = Allocator()
    notes = annotated(a)
    snap = snapshot(a, (2, 5), notes)
    yield "torch2.5", snap, 4
    for protocol in (0, 1, 2, 3):
        yield f"torch2.5_proto{protocol}", snap, protocol
    yield "torch2.5_cpp", snap, "cpp"

    # 2.5, two devices in one process; only the second leaks, and its weights are older than the recording.
    pair = [Allocator(), Allocator(base=0x7F2D80000000, recording=False)]
    older = train(pair[1])
    pair[1].alloc(2 * MiB + 300, S["build"])
    for i, _ in enumerate(train(pair[0], leak=False)):
        next(older)
        if i == 1:
            pair[1].recording = True
            for s in pair[1].segments:
                s.frames = None
                for b in s.blocks:
                    b.frames = None
    yield "torch2.5_two_devices", snapshot(pair, (2, 5)), 4

    # 2.12: pool_id on entries; the hidden states live in a private pool. Nothing leaks.
    a = Allocator()
    finish(train(a, leak=False, pool=(0, 1)))
    yield "torch2.12_pools", snapshot(a, (2, 12)), 4

    # 2.14: pinned host memory beside the device, and annotated tensors.
    a, host = Allocator(), Allocator(base=0x7E0000000000)
    run = train(a)
    for i in range(12):
        next(run)
        if i % 4 == 0:
            kept = max(e["addr"] for e in a.events if e["action"] == "alloc" and e["size"] == MiB and e["frames"] is S["hidden"])
            a.metadata = f"hidden of step {i}"
            a.note("annotate", kept, 0, frames=S["kept"])
            a.metadata = ""
    host_segments, host_traces = [], []
    for n, size in enumerate((4 * MiB, 4 * MiB, 64 * KiB)):
        address = 0x7E0000000000 + n * 4 * MiB
        host_segments.append({"address": address, "size": size, "allocated": n != 1, "active": n != 1, "owner_private_pool_id": (0, 0), "frames": S["batch"]})
        for action in ("segment_alloc", "alloc") + (("free_requested", "free_completed") if n == 1 else ()):
            host.note(action, address, size, frames=S["batch"])
    host_traces = [event_dict(e, (2, 14)) for e in host.events]
    yield "torch2.14_host", snapshot(a, (2, 14), host_segments=host_segments, host_traces=host_traces), 4

    # 2.15 under Python 3.14, which pickles with protocol 5 by default.
    a = Allocator()
    a.metadata = '{"phase":"train"}'
    notes = annotated(a)
    for n, e in enumerate(a.events):
        if e["action"] == "alloc" and n % 40 == 1:
            e["internal_metadata"] = "mallocWithAddress"
        if e["action"] == "alloc" and e["frames"] is S["autograd"]:
            e["forward_frames"] = [f'  File "{TRAIN}", line 39, in step\n    out = model(x)\n']
        if e["frames"] is S["relu"]:
            e["compile_context"] = "Torch-Compiled Region: 0/0"
    yield "torch2.15", snapshot(a, (2, 15), notes), 5

    # XPU: addresses above 2^63, as the Python writer and as a C++ writer put them.
    a = Allocator(base=0xFF00FFFFE0000000)
    finish(train(a))
    snap = snapshot(a, (2, 11))
    yield "xpu_python", snap, 4
    yield "xpu_cpp", snap, "cpp"

    # torch_npu: the schema of 2.1 with the operators' workspace as the first entry.
    a = Allocator(base=0x12C080000000)
    a.recording = False
    work = a.alloc(16 * MiB, None)
    a.recording = True
    a.note("workspace_snapshot", work, 16 * MiB)
    finish(train(a))
    yield "torch_npu_workspace", snapshot(a, (2, 1)), 4

    yield "profiler_categories", profiler(), 4


def profiler():
    """What _memory_viz makes of a torch.profiler run: one segment a device, the CPU last, bare blocks, categories."""
    slots = [dict(base=0x7F2C40000000, live=[], trace=[]), dict(base=0x55D0C0000000, live=[], trace=[])]

    def alloc(slot, size, category, names, preexisting=False):
        at = slot["base"]
        for a, z, _ in sorted(slot["live"], key=lambda x: x[0]):
            if at + size <= a:
                break
            at = a + round_up(z, 512)
        frames = [{"filename": "none", "line": 0, "name": n} for n in names]
        slot["live"].append((at, size, frames))
        if not preexisting:
            slot["trace"].append({"action": "alloc", "addr": at, "size": size, "stream": 0, "frames": frames, "category": category})
        return at

    def free(slot, at):
        entry = next(x for x in slot["live"] if x[0] == at)
        slot["live"].remove(entry)
        for action in ("free_requested", "free_completed"):
            slot["trace"].append({"action": action, "addr": at, "size": entry[1], "stream": 0, "frames": entry[2]})

    gpu, cpu = slots
    step = ("<built-in method linear of type object at 0x7f2c>", "nn.Module: Linear_0", "train.py(39): step", "train.py(48): <module>")
    for size in (4 * MiB, 4096):
        alloc(gpu, size, "parameter", (), preexisting=True)
    for _ in range(12):
        host = alloc(cpu, 64 * 1024 * 4, "input", step[2:])
        batch = alloc(gpu, 64 * 1024 * 4, "input", step[2:])
        alloc(gpu, MiB, "activation", step)
        grad = alloc(gpu, 4 * MiB, "gradient", ())
        temp = alloc(gpu, 1_000_000, "unknown", ())
        for slot, at in ((gpu, temp), (gpu, grad), (gpu, batch), (cpu, host)):
            free(slot, at)
    alloc(cpu, 4096, "temporary", step[3:])
    segments = []
    for device, slot in enumerate(slots):
        ends = [e["addr"] + e["size"] for e in slot["trace"] if e["action"] == "alloc"]
        blocks, at = [], slot["base"]
        for a, size, frames in sorted(slot["live"], key=lambda x: x[0]):
            if at < a:
                blocks.append({"size": a - at, "state": "inactive"})
            blocks.append({"size": size, "state": "active_allocated", "requested_size": size, "frames": frames})
            at = a + size
        if at < max(ends):
            blocks.append({"size": max(ends) - at, "state": "inactive"})
        segments.append({"device": device, "address": slot["base"], "total_size": max(max(ends), at) - slot["base"], "stream": 0, "blocks": blocks})
    return {"device_traces": [s["trace"] for s in slots], "segments": segments}


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "older")
    os.makedirs(out, exist_ok=True)
    for name, snap, protocol in samples():
        check(name, snap)
        snap = canonical(snap)
        raw = cpp_pickle(snap) if protocol == "cpp" else pickle.dumps(snap, protocol)
        with open(os.path.join(out, name + ".pickle"), "wb") as f:
            f.write(raw)


if __name__ == "__main__":
    main()
