"""Plays one script on the allocator of torch and writes down what it did.

    drive.py JOB.json

One process plays one script under one setting: PYTORCH_CUDA_ALLOC_CONF is read once, before torch is imported.
A job names the script, the setting and where the results go:

    script        path of the script                        conf        PYTORCH_CUDA_ALLOC_CONF
    limit_mib     memory limit in MiB, set as a fraction    leave_mib   take all of the device but so many MiB first
    fraction      the same, as a fraction                   stacks      record Python stacks
    every_op      keep the counters after every operation   out, snapshot   the results

The language, one operation a line; IDs name blocks, streams are 0 (the default one), 1, 2, ...:

    alloc ID BYTES STREAM       request; if it fails the ID names nothing and later uses of it do nothing
    free ID
    use ID STREAM               record_stream: the block is in use on this stream too
    busy STREAM                 a kernel that keeps this stream busy for BUSY_S seconds
    sync                        torch.cuda.synchronize()
    empty_cache                 torch.cuda.empty_cache()
    pool_open K [FLAG...]       requests go to MemPool K (made at the first use, with the flags as options)
    pool_close
    pool_drop K                 the MemPool object goes away
    graph_begin K [POOL_OF]     capture graph K on stream 9, in the pool of graph POOL_OF if given
    graph_end
    graph_drop K
    conf [STRING]               torch.cuda.memory._set_allocator_settings
    fraction F, limit MIB       torch.cuda.set_per_process_memory_fraction
"""
import contextlib
import json
import os
import sys
import time
import warnings

MIB, BUSY_S, CLOCK_HZ = 1 << 20, 0.35, 1.98e9
JOB = json.load(open(sys.argv[1]))
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = JOB.get("conf", "")
if not JOB.get("conf"):
    del os.environ["PYTORCH_CUDA_ALLOC_CONF"]

import torch  # noqa: E402  (after the setting)

warnings.filterwarnings("ignore", message=".*_set_allocator_settings is deprecated.*")
warnings.filterwarnings("ignore", message=".*CUDA Graph is empty.*")


class Player:
    def __init__(self):
        self.blocks, self.streams, self.pools, self.graphs = {}, {0: torch.cuda.default_stream()}, {}, {}
        self.scope = self.capture = None
        self.ooms, self.errors = [], []

    def stream(self, k):
        if k not in self.streams:
            self.streams[k] = torch.cuda.Stream()
        return self.streams[k]

    def alloc(self, which, size, stream="0"):
        try:
            if stream == "0":
                self.blocks[which] = torch.empty(int(size), dtype=torch.uint8, device="cuda")
            else:
                with torch.cuda.stream(self.stream(int(stream))):
                    self.blocks[which] = torch.empty(int(size), dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError as error:
            return str(error)

    def free(self, which):
        self.blocks.pop(which, None)

    def use(self, which, stream):
        if which in self.blocks:
            self.blocks[which].record_stream(self.stream(int(stream)))

    def busy(self, stream):
        with torch.cuda.stream(self.stream(int(stream))):
            torch.cuda._sleep(int(BUSY_S * CLOCK_HZ))

    def sync(self):
        torch.cuda.synchronize()

    def empty_cache(self):
        torch.cuda.empty_cache()

    def pool_open(self, k, *flags):
        if k not in self.pools:
            self.pools[k] = torch.cuda.MemPool(**{flag: True for flag in flags})
        self.scope = contextlib.ExitStack()
        self.scope.enter_context(torch.cuda.use_mem_pool(self.pools[k]))

    def pool_close(self):
        self.scope.close()

    def pool_drop(self, k):
        del self.pools[k]

    def graph_begin(self, k, pool_of=None):
        self.capture = contextlib.ExitStack()
        self.capture.enter_context(torch.cuda.stream(self.stream(9)))
        self.graphs[k] = torch.cuda.CUDAGraph()
        pool = (self.graphs[pool_of].pool(),) if pool_of else ()
        self.graphs[k].capture_begin(*pool, capture_error_mode="relaxed")
        self.captured = k

    def graph_end(self):
        self.graphs[self.captured].capture_end()
        self.capture.close()

    def graph_drop(self, k):
        self.graphs.pop(k).reset()

    def conf(self, text=""):
        torch.cuda.memory._set_allocator_settings(text)

    def fraction(self, share):
        torch.cuda.set_per_process_memory_fraction(float(share))

    def limit(self, mib):
        self.fraction(float(mib) * MIB / torch.cuda.get_device_properties(0).total_memory)


def take_all_but(leave):
    """Takes device memory behind the allocator's back, as another process would."""
    import ctypes
    driver, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64()
    size = (torch.cuda.mem_get_info()[0] - leave) // (2 * MIB) * (2 * MIB)
    assert driver.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)) == 0
    return size


KEPT = ["reserved_bytes.all.peak", "reserved_bytes.all.current", "reserved_bytes.small_pool.current", "reserved_bytes.large_pool.current",
        "allocated_bytes.all.peak", "allocated_bytes.all.current", "active_bytes.all.peak", "active_bytes.all.current",
        "requested_bytes.all.peak", "inactive_split_bytes.all.peak", "inactive_split_bytes.all.current",
        "segment.all.peak", "segment.all.current", "num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free", "num_sync_all_streams"]


def main():
    torch.cuda.init()
    torch.cuda._sleep(1000)  # loads the kernel, so that no later operation has to
    total = torch.cuda.get_device_properties(0).total_memory
    fraction = JOB.get("fraction")
    if JOB.get("limit_mib"):
        fraction = JOB["limit_mib"] * MIB / total
    if fraction is not None:
        torch.cuda.set_per_process_memory_fraction(fraction)
    torch.cuda.synchronize()
    facts = {"total_memory": total, "mem_get_info": list(torch.cuda.mem_get_info()), "fraction": fraction, "torch": torch.__version__}
    if JOB.get("leave_mib"):
        facts["taken"] = take_all_but(JOB["leave_mib"] * MIB)
        facts["left"] = torch.cuda.mem_get_info()[0]
    context = "all" if JOB.get("stacks") else None
    torch.cuda.memory._record_memory_history(context=context, stacks="python", max_entries=1_000_000)

    player, script = Player(), [line.split(maxsplit=1) for line in open(JOB["script"]) if line.strip() and not line.startswith("#")]
    reserved, retries, oom_ops, texts, errors, rows = [], [], [], [], [], []
    began = time.time()
    for n, (verb, *rest) in enumerate(script):
        words = rest[0].strip().split() if rest else []
        try:
            text = getattr(player, verb)(*words)
            if text:
                oom_ops.append(n)
                texts.append(text)
        except Exception as error:  # what torch refuses is a result, too
            errors.append([n, type(error).__name__, str(error).splitlines()[0]])
        stats = torch.cuda.memory_stats()
        for series, key in ((reserved, "reserved_bytes.all.current"), (retries, "num_alloc_retries")):
            value = stats.get(key, 0)
            if value != (series[-1][1] if series else 0):
                series.append([n, value])
        if JOB.get("every_op"):
            row = [stats.get(k, 0) for k in ("reserved_bytes.all.current", "allocated_bytes.all.current", "active_bytes.all.current", "num_alloc_retries", "num_ooms")]
            rows.append(row + ([torch.cuda.mem_get_info()[0]] if JOB.get("leave_mib") else []))
    stats = torch.cuda.memory_stats()
    facts["seconds"] = round(time.time() - began, 3)
    torch.cuda.memory._dump_snapshot(JOB["snapshot"])
    facts.update({k: stats.get(k, 0) for k in KEPT})
    facts["streams"] = {str(k): s.cuda_stream for k, s in player.streams.items()}
    facts.update(reserved=reserved, retries=retries, oom_ops=oom_ops, errors=errors)
    if JOB.get("every_op"):
        facts.update(after_every_op=rows, oom_texts=texts)
    elif texts:
        facts["first_oom_text"] = texts[0]
    json.dump({"name": JOB["name"], "setting": JOB.get("setting"), "conf": JOB.get("conf", ""), "limit_mib": JOB.get("limit_mib"), **facts}, open(JOB["out"], "w"))


main()
