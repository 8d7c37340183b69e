#!/usr/bin/env python3
"""Shows by experiment that the holders in truth.json are true, without any tool that names holders.

Each program runs in a process of its own. When it calls vramscope_check(), the reference that truth.json names is
cut (the list cleared, the attribute deleted, the local set to None), and the C library is asked how many bytes became
free. A named reference that frees the memory holds it. Needs glibc 2.33; for the CPU only.

    selfcheck.py [--python PYTHON] [--write] [NAME ...]
"""
import argparse
import ast
import ctypes
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

# How to cut where Python has no name for the last reference, or where cutting takes more than one step.
# `main` is the program's module. Where two hold, both must be cut.
CUTS = {
    "threadlocal_worker": "each('dict', lambda o: o.pop('buffers', None))",
    "gc_garbage": "import gc; gc.set_debug(0); gc.garbage.clear(); gc.collect()",
    "lru_cache_function": "main.positional.cache_clear()",
    "lru_cache_bounded": "main.positional.cache_clear()",
    "lru_cache_method": "main.Session.summary.cache_clear()",
    "atexit_args": "import atexit; atexit._clear()",
    "contextvar_tokens": "main.tokens.clear()",
    "weakref_callback": "main.watchers.clear()",
    "finalize_args": "import weakref; weakref.finalize._registry.clear()",
    "simplequeue_backlog": "del main.inbox",
    "task_results": "main.tasks.clear()",
    "iter_zip": "del main.pairs",
    "iter_map": "del main.scores",
    "iter_chain": "del main.stream",
    "iter_enumerate": "del main.numbered",
    "itertools_cycle": "del main.batches",
    "itertools_tee": "del main.behind",
    "linked_list": "main.head = None",
    "tuple_trail": "main.trail = ()",
    "namedtuple_records": "main.history.clear()",
    "replay_buffer": "main.agent.memory.clear()",
    "pairs_list": "main.pairs.clear()",
    "kv_server": "main.server.sessions.clear()",
    "dynamic_class": "main.kinds.clear()\nimport gc; gc.collect()",
    "enum_member": "main.Stage.EVAL.outputs.clear()",
    "dict_keys": "main.first_seen.clear()",
    "parameter_list": "main.bank.prototypes = None",
    "closure_lambda": "main.pending.clear()",
    "tensor_hook": "main.model.weight._backward_hooks.clear()",
    "bound_method_callbacks": "main.callbacks.clear()",
    "builtin_method_callbacks": "main.getters.clear()",
    "storage_list": "main.storages.clear()",
    "numpy_views": "main.arrays.clear()",
    "partial_args": "main.callbacks.clear()",
    "partial_keywords": "main.jobs.clear()",
    "log_handler": "main.handler.buffer.clear()",
    "sys_last_value": "import sys; sys.last_value = sys.last_traceback = None",
    "errors_list": "main.errors.clear()",
    "except_handler": "frame_of('forward', failed=True).clear()",
    "for_temporary": None,
    "lstm_state": "main.state = None",
    "rnn_carry": "main.hidden = main.loss = None",
    "optimizer_removed": "main.optimizer.state.clear()",
    "model_copies": "main.ensemble.clear()",
    "local_passed_down": "frame_of('main').f_locals['history'].clear()",
    "two_globals": "main.recent.clear(); main.archive.clear()",
    "two_attrs_one_parent": "del main.trainer",
    "two_views_one_storage": "main.batches.clear(); main.rows.clear()",
    "two_graph_and_list": "main.features.clear(); main.losses.clear()",
    # garbage: the edge is cut in every garbage object; the collector does not run
    "cycle_sawtooth": "each('Node', lambda o: delattr(o, 'me'))",
    "cycle_parent_child": "each('Step', lambda o: delattr(o, 'episode'))",
    "cycle_closure": "each('function', lambda o: o.__closure__ and 'retry' in o.__code__.co_freevars and "
                     "setattr(o.__closure__[o.__code__.co_freevars.index('retry')], 'cell_contents', None))",
    "cycle_exception": "each('ValueError', lambda o: o.with_traceback(None))",
    "cycle_bound_method": "each('Session', lambda o: delattr(o, 'callback'))",
    "cycle_dict": "each('Context', lambda o: hasattr(o, 'registry') and delattr(o, 'registry'))",
    "cycle_module_hook": "each('Net', lambda o: o._forward_hooks.clear())",
    "cycle_module_parent": "each('Block', lambda o: delattr(o, 'parent'))",
    "cycle_module_self": "each('Teacher', lambda o: delattr(o, 'teacher'))",
    "cycle_ctx_output": "each('ExpBackward', lambda o: o.__dict__.pop('out', None))",
    "cycle_holds_graph": "each('Run', lambda o: delattr(o, 'me'))",
    "cycle_tail": "each('Ring', lambda o: setattr(o, 'next', None))",
    "backward_create_graph": "each('Tensor', lambda o: setattr(o, 'grad', None))",
}

# Hold much host memory beside their tensors: the profiler's events, autograd's nodes. truth.json has `bytes` for them.
MORE_THAN_TENSORS = {"profiler_trace", "train_loss_scalars"}


class Mallinfo(ctypes.Structure):
    _fields_ = [(n, ctypes.c_size_t) for n in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


def used():
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Mallinfo
    info = libc.mallinfo2()
    return info.hblkhd + info.uordblks


def frames():
    """Running frames of all threads, then those of generators, coroutines and async generators."""
    import gc
    for frame in sys._current_frames().values():
        while frame:
            yield frame
            frame = frame.f_back
    for o in gc.get_objects():
        for attribute in ("gi_frame", "cr_frame", "ag_frame"):
            if type(o).__name__ in ("generator", "coroutine", "async_generator") and getattr(o, attribute, None):
                yield getattr(o, attribute)


def frame_of(function, failed=False):
    if failed:
        traceback = sys.exc_info()[2]
        while traceback.tb_frame.f_code.co_name != function:
            traceback = traceback.tb_next
        return traceback.tb_frame
    return next(f for f in frames() if f.f_code.co_name == function)


def each(kind, action):
    import gc
    for o in [o for o in gc.get_objects() if type(o).__name__ == kind]:
        action(o)


def set_local(frame, name, value):
    frame.f_locals[name] = value
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def roots(path):
    """What the first part of a path means: ([(object, parent, how to cut it)], rest of the path)."""
    m = re.match(r"(\w+):(\w+)(.*)", path)
    if m:
        found = [f for f in frames() if f.f_code.co_name == m[1] and m[2] in f.f_locals]
        return [(f.f_locals[m[2]], lambda f=f: set_local(f, m[2], None)) for f in found], m[3]
    if path.startswith("contextvars."):
        import contextvars
        name, rest = re.match(r"contextvars\.(\w+)(.*)", path).groups()
        return [(value, None) for var, value in contextvars.copy_context().items() if var.name == name], rest
    parts = path.split(".")
    for n in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:n])
        if module in sys.modules:
            return [(sys.modules[module], None)], "." + ".".join(parts[n:])
    import gc
    name, rest = re.match(r"(\w+)(.*)", path).groups()
    return [(o, None) for o in gc.get_objects() if isinstance(o, type) and o.__name__ == name and o.__module__ == "__main__"], rest


def follow(path):
    """Functions that cut the last reference of the path, one for each object that it leads to."""
    places, rest = roots(path)
    for closure, index, name in re.findall(r"\.<closure>\.(\w+)|(\[\*\])|\.(\w+)", rest):
        after = []
        for o, cut in places:
            if closure:
                cell = o.__closure__[o.__code__.co_freevars.index(closure)]
                after.append((cell.cell_contents, lambda c=cell: setattr(c, "cell_contents", None)))
            elif index:
                items = list(o.values()) if hasattr(o, "values") else list(o)
                clear = o.clear if hasattr(o, "clear") else cut
                after += [(item, clear) for item in items]
            elif hasattr(o, name):
                after.append((getattr(o, name), lambda o=o, name=name: delattr(o, name)))
        places = after
    return [cut for _, cut in places]


def cut(name, path):
    main = sys.modules["__main__"]
    if name in CUTS:
        if CUTS[name]:
            exec(CUTS[name], {"main": main, "frame_of": frame_of, "each": each})
        return CUTS[name] is not None
    cuts = follow(path)
    if not cuts:
        raise LookupError(f"{path} leads to nothing")
    for action in cuts:
        action()
    return True


def child(name, truth):
    """Runs one program, and cuts when it asks for a check."""
    import builtins
    import runpy
    import torch
    torch.nn.Linear(8, 8)(torch.randn(8, 8)).mean().backward()
    start = used()
    steps = 0

    def step():
        nonlocal steps
        steps += 1

    def check():
        held = used() - start
        was_cut = truth["holder"] is not None and cut(name, truth["holder"])
        print("RESULT", json.dumps({"steps": steps, "held": held, "frees": held + start - used() if was_cut else None}), flush=True)
        os._exit(0) if was_cut else None

    builtins.vramscope_step, builtins.vramscope_check = step, check
    runpy.run_path(os.path.join(HERE, "programs", name + ".py"), run_name="__main__")


def serve():
    """Imports torch once, then runs each program named on standard input in a fork of its own."""
    import torch
    import gc
    import numpy, torch._dynamo, torch.distributed, torch.optim.swa_utils, torch.profiler, torch.utils.checkpoint, torch.utils.data  # noqa: E401, F401
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    truth = json.load(open(os.path.join(HERE, "truth.json")))
    for name in sys.stdin.read().split():
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(write, 1), os.dup2(write, 2), os.close(read), os.close(write)
            status = 1
            try:
                child(name, truth[name])
                status = 0
            except BaseException:
                import traceback
                traceback.print_exc()
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(status)
        os.close(write)
        with os.fdopen(read) as f:
            output = f.read()
        _, status, usage = os.wait4(pid, 0)
        print(json.dumps([name, status, usage.ru_utime + usage.ru_stime, output]), flush=True)


def run(python, names):
    env = dict(os.environ, MALLOC_MMAP_MAX_="0", MALLOC_TRIM_THRESHOLD_="4000000000", MALLOC_ARENA_MAX="1", OMP_NUM_THREADS="1", MKL_DISABLE_FAST_MM="1")
    p = subprocess.Popen([python, os.path.abspath(__file__), "--serve"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)
    p.stdin.write(" ".join(names))
    p.stdin.close()
    for line in p.stdout:
        name, status, cpu, output = json.loads(line)
        lines = dict(line.split(" ", 1) for line in output.splitlines() if line.startswith(("RESULT ", "expected ")))
        if status or "RESULT" not in lines:
            yield name, {"error": (output.strip().splitlines() or [f"status {status}"])[-1]}
        else:
            yield name, dict(json.loads(lines["RESULT"]), cpu=cpu, expected=ast.literal_eval(lines["expected"]) if "expected" in lines else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--write", action="store_true", help="write frees, classes and steps into truth.json")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve()
    file = os.path.join(HERE, "truth.json")
    truth = json.load(open(file))
    names = args.names or list(truth)
    bad = 0
    for name, result in run(args.python, names):
        row, problems = truth[name], []
        if "error" in result:
            print(f"{name:28} FAILED {result['error']}", flush=True)
            bad += 1
            continue
        frees = result["frees"]
        if args.write and frees is not None and name not in MORE_THAN_TENSORS:
            row["frees"] = frees
        if args.write and result["expected"]:
            row["classes"] = result["expected"]
        if result["steps"] != row["steps"]:
            problems.append(f"{result['steps']} steps, not {row['steps']}")
        if row["holder"] and frees is not None and name not in MORE_THAN_TENSORS and frees < 0.5 * result["held"]:
            problems.append(f"cutting frees {frees} of {result['held']} bytes held")
        if row["holder"] is None:
            total = sum(row.get("classes", result["expected"]).values())
            if row.get("classes", result["expected"]) != result["expected"]:
                problems.append(f"classes {result['expected']}")
            if not -0.02 * total - 65536 < result["held"] - total < 0.05 * total + 600000:
                problems.append(f"held {result['held']}, classes sum to {total}")
        print(f"{name:26} {result['cpu']:4.1f} s {result['held']:>10} held {str(frees):>10} freed  {'; '.join(problems) or 'ok'}", flush=True)
        bad += bool(problems)
    if args.write:
        with open(file, "w") as f:
            f.write("{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in truth.items()) + "\n}\n")
    print(f"{len(names) - bad} of {len(names)} hold")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
