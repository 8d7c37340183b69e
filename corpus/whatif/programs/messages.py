"""What torch says to allocator settings, right and wrong ones: `messages.py OUT.json`.

Each string is given twice: as PYTORCH_CUDA_ALLOC_CONF of a fresh process, and at run time. `stage` says what raised.
"""
import concurrent.futures
import json
import os
import subprocess
import sys

CONFS = [
    "", " ", ",", ":", "[", "foo", "foo:1", "foo:1,bar:2", "expandable_segments", "expandable_segments:", "expandable_segments:True", "expandable_segments:False",
    "expandable_segments:true", "expandable_segments:1", "expandable_segments:True,", ",expandable_segments:True", "expandable_segments:True,,max_split_size_mb:64",
    " expandable_segments : True ", "expandable_segments:True max_split_size_mb:64", "expandable_segments:True;max_split_size_mb:64", "expandable_segments=True", "Expandable_Segments:True",
    "expandable_segments:True,expandable_segments:False", "max_split_size_mb:2", "max_split_size_mb:19", "max_split_size_mb:20", "max_split_size_mb:21", "max_split_size_mb:0", "max_split_size_mb:-1",
    "max_split_size_mb:", "max_split_size_mb", "max_split_size_mb:abc", "max_split_size_mb:64mb", "max_split_size_mb:64.5", "max_split_size_mb:1e3", "max_split_size_mb:99999999999999999999", "max_split_size_mb:17592186044416",
    "max_split_size_mb:64:32", "max_split_size_mb::64", "max_non_split_rounding_mb:2", "max_non_split_rounding_mb:20", "max_non_split_rounding_mb:64",
    "large_segment_size_mb:10", "large_segment_size_mb:11", "large_segment_size_mb:12", "large_segment_size_mb:2", "large_segment_size_mb:0", "large_segment_size_mb:x", "large_segment_size_mb:12.5",
    "large_segment_size_mb:64,max_split_size_mb:32", "max_split_size_mb:32,large_segment_size_mb:64", "large_segment_size_mb:12,max_split_size_mb:15", "large_segment_size_mb:64,max_non_split_rounding_mb:32",
    "garbage_collection_threshold:1.2", "garbage_collection_threshold:1", "garbage_collection_threshold:1.0", "garbage_collection_threshold:0", "garbage_collection_threshold:0.0", "garbage_collection_threshold:-0.5",
    "garbage_collection_threshold:0.6", "garbage_collection_threshold:x", "garbage_collection_threshold:.5", "garbage_collection_threshold:60%",
    "roundup_power2_divisions:3", "roundup_power2_divisions:0", "roundup_power2_divisions:1", "roundup_power2_divisions:8", "roundup_power2_divisions:-4", "roundup_power2_divisions:x", "roundup_power2_divisions:[", "roundup_power2_divisions:[]",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8", "roundup_power2_divisions:[256:1,512:2,]", "roundup_power2_divisions:[100:2]", "roundup_power2_divisions:[64:3]",
    "roundup_power2_divisions:[>:3]", "roundup_power2_divisions:[>:8]", "roundup_power2_divisions:[64:0,>:8]", "roundup_power2_divisions:[foo:2]", "roundup_power2_divisions:[64]", "roundup_power2_divisions:[64:]", "roundup_power2_divisions:[64:2 128:4]",
    "roundup_power2_divisions:[0:2]", "roundup_power2_divisions:[131072:2]", "roundup_power2_divisions:[128:2,64:4]", "roundup_power2_divisions:[64:2],max_split_size_mb:64", "roundup_power2_divisions:[64:2]max_split_size_mb:64",
    "per_process_memory_fraction:0.5", "per_process_memory_fraction:1.0", "per_process_memory_fraction:0", "per_process_memory_fraction:1.5", "per_process_memory_fraction:-0.1", "per_process_memory_fraction:x",
    "release_lock_on_cudamalloc:True", "release_lock_on_cudamalloc:x", "graph_capture_record_stream_reuse:True", "graph_capture_record_stream_reuse:yes", "throw_on_cudamalloc_oom:True", "expandable_segments_reserve:0.5", "roundup_bypass_threshold_mb:64",
    "backend:native", "backend:cudaMallocAsync", "backend:foo", "backend:", "pinned_use_cuda_host_register:True", "pinned_use_cuda_host_register:x", "pinned_num_register_threads:3", "pinned_num_register_threads:4", "pinned_num_register_threads:256",
    "pinned_use_background_threads:True", "pinned_reserve_segment_size_mb:64", "pinned_max_round_threshold_mb:64", "pinned_max_cached_size_mb:64",
]

CHILD = """
import json, os, sys, warnings
warnings.simplefilter("ignore", FutureWarning)
stage, out = "import", {}
try:
    import torch
    stage = "init"
    if torch.cuda.is_available():
        torch.cuda.init()
        stage = "first allocation"
        x = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
        s = torch.cuda.memory._snapshot()["allocator_settings"] if "cudaMallocAsync" not in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") else {}
        out["settings"] = s
    else:
        stage = "first use"
        torch.cuda.memory._set_allocator_settings(sys.argv[1] or "")
    stage = None
except BaseException as e:
    out.update(type=type(e).__name__, text=str(e))
out["stage"] = stage
print("RESULT" + json.dumps(out))
"""

RUNTIME = """
import json, sys, warnings
warnings.simplefilter("ignore", FutureWarning)
import torch
if torch.cuda.is_available():
    torch.cuda.init()
out = []
for conf in json.loads(sys.argv[1]):
    try:
        torch.cuda.memory._set_allocator_settings(conf)
        s = torch.cuda.memory._snapshot()["allocator_settings"] if torch.cuda.is_available() else {}
        out.append({"settings": s})
    except BaseException as e:
        out.append({"type": type(e).__name__, "text": str(e)})
    try:  # back to the defaults
        torch.cuda.memory._set_allocator_settings("expandable_segments:False,large_segment_size_mb:20,per_process_memory_fraction:1.0")
    except BaseException as e:
        out[-1]["reset"] = str(e)
print("RESULT" + json.dumps(out))
"""


def environment(name, conf, **more):
    env = {k: v for k, v in os.environ.items() if "ALLOC_CONF" not in k}
    return {**env, name: conf, **more}


def child(code, argument, env):
    done = subprocess.run([sys.executable, "-c", code, argument], env=env, capture_output=True, text=True, timeout=120)
    found = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    if found:
        return json.loads(found[-1][6:])
    said = [line.strip() for line in done.stderr.splitlines() if "what():" in line] or ["what():  " + done.stderr[-200:]]
    return {"stage": "import", "type": f"the process ends with signal {-done.returncode}", "text": said[0].split("what():", 1)[1].strip()}


def brief(result):
    """The whole settings of the snapshot are long: keep what differs from the defaults."""
    settings = result.pop("settings", None)
    if settings is not None:
        rounding = settings.get("roundup_power2_divisions", {})
        quiet = {"max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": False, "pinned_num_register_threads": 1, "release_lock_on_cudamalloc": False,
                 "pinned_use_cuda_host_register": False, "graph_capture_record_stream_reuse": False}
        result["accepted"] = {k: v for k, v in settings.items() if k not in ("roundup_power2_divisions",) and quiet.get(k) != v}
        if any(rounding.values()):
            result["accepted"]["roundup_power2_divisions"] = rounding
    return result


def main():
    at_once = int(os.environ.get("WORKERS", "14"))
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        fresh = list(pool.map(lambda c: child(CHILD, "", environment("PYTORCH_CUDA_ALLOC_CONF", c)), CONFS))
        both = {
            "PYTORCH_ALLOC_CONF alone": child(CHILD, "", environment("PYTORCH_ALLOC_CONF", "max_split_size_mb:64")),
            "PYTORCH_ALLOC_CONF=max_split_size_mb:64 and PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:32": child(CHILD, "", environment("PYTORCH_ALLOC_CONF", "max_split_size_mb:64", PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:32")),
            "PYTORCH_ALLOC_CONF=expandable_segments:True and PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:32": child(CHILD, "", environment("PYTORCH_ALLOC_CONF", "expandable_segments:True", PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:32")),
        }
    at_run_time = child(RUNTIME, json.dumps(CONFS), environment("NONE", ""))
    rows = []
    for n, conf in enumerate(CONFS):
        row = {"conf": conf, "environment": brief(fresh[n])}
        run_time = brief(at_run_time[n]) if isinstance(at_run_time, list) else at_run_time
        row["run_time"] = run_time
        rows.append(row)
    json.dump({"messages": rows, "environment_variables": {k: brief(v) for k, v in both.items()}}, open(sys.argv[1], "w"), indent=1)
    print("messages", len(rows))


main()
