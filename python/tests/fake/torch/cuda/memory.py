import pickle

import torch


def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=1 << 60, clear_history=False):
    a = torch.allocator
    a.limit = max_entries
    if enabled is None:
        a.trace = None
    elif a.trace is None or clear_history:
        a.trace = []


def _snapshot():
    return torch.allocator.snapshot()


def memory_snapshot():
    return _snapshot()["segments"]


def _dump_snapshot(filename):
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)
