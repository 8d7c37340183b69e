"""Runs training programs on the CPU, and writes what is kept after each step: ``python twin_programs.py PROGRAM…``.

Each program imports ``probe``, which is here. Beside ``train.py`` come ``train.json``, or one ``train.RANK.json`` for each rank: bytes
and graph nodes after each step.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import socket
import sys
import tempfile
import traceback
import types
import weakref
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # optimizers import it; once here for all programs
import torch.distributed
import torch.profiler
import torchvision  # noqa: F401 # programs import it
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

STEPS = 6
RANKS = 2


class Storages(TorchDispatchMode):
    """Bytes of the storages that operators made on the CPU and that are alive, those that only the graph holds as well."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu":
                self.note(tensor.untyped_storage())
        return result

    def note(self, storage: torch.UntypedStorage) -> None:
        address = storage._cdata
        if address not in self.alive:
            self.alive[address] = storage.nbytes()
            weakref.finalize(storage, self.alive.pop, address).atexit = False

    def bytes(self) -> int:
        gc.collect()
        return sum(self.alive.values())


def graph_nodes() -> int:
    """Nodes of the graphs that living tensors belong to."""
    waiting = [it.grad_fn for it in gc.get_objects() if issubclass(type(it), torch.Tensor) and it.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        new = {node for node, _ in waiting.pop().next_functions if node is not None} - seen
        seen |= new
        waiting += new
    return len(seen)


def probe(program: Path, storages: Storages) -> types.ModuleType:
    """What the programs take ``probe.py`` of the corpus for."""
    module = types.ModuleType("probe")
    rows: list[tuple[int, int]] = []
    module.OUT = tempfile.mkdtemp(dir=program.parent)
    module.steps = lambda default: min(default, STEPS)
    module.start = lambda **_: torch.manual_seed(0)
    module.step = lambda *_, **__: rows.append((storages.bytes(), graph_nodes()))
    module.snap = lambda _: None
    module.done = lambda rank=None, **_: program.with_suffix(".json" if rank is None else f".{rank}.json").write_text(json.dumps(rows))
    return module


def run(program: Path) -> None:
    # Of what only a device has, programs ask for these two beside the steps.
    torch.cuda.memory_snapshot, torch.cuda.memory_summary = list, str
    torch.set_num_threads(1)
    sys.argv = [str(program)]
    with Storages() as storages:
        sys.modules["probe"] = probe(program, storages)
        runpy.run_path(str(program), run_name="__main__")


def start(program: Path, **environment: str) -> int:
    process = os.fork()
    if process == 0:
        os.environ.update(environment)
        try:
            run(program)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return process


def main() -> None:
    # What is here before a program starts is none of it, and the collector need not look at it.
    gc.freeze()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    failed = []
    for program in map(Path, sys.argv[1:]):
        ranks = range(RANKS if "init_process_group" in program.read_text() else 1)
        meeting = {"WORLD_SIZE": str(len(ranks)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        processes = [start(program, RANK=str(rank), **meeting) for rank in ranks]
        if any(os.waitpid(process, 0)[1] for process in processes):
            failed.append(str(program))
    sys.exit("\n".join(["failed:", *failed]) if failed else 0)


if __name__ == "__main__":
    main()
