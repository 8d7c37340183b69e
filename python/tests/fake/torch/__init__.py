"""A stand-in for torch with a device: as much of it as the recorder sees, and an allocator that only counts.

Programs of the tests get it by ``PYTHONPATH``. It starts in no time, and what it holds is known to the byte.
"""

# What torch itself imports, among much else.
import contextlib  # noqa: F401
import functools  # noqa: F401
import gc  # noqa: F401
import importlib.metadata  # noqa: F401
import inspect  # noqa: F401
import json  # noqa: F401
import pickle  # noqa: F401
import re  # noqa: F401
import signal  # noqa: F401
import threading  # noqa: F401
import time
import traceback
import typing  # noqa: F401
import weakref  # noqa: F401

__version__ = "2.11.0+fake"


class version:
    cuda = "13.0"


class OutOfMemoryError(RuntimeError):
    pass


class Allocator:
    capacity = 1 << 40

    def __init__(self):
        self.next, self.live, self.trace = 0x7F0000000000, {}, None
        self.allocated = self.peak = self.made = self.freed = self.retries = self.ooms = 0
        self.limit, self.observers = 0, []

    def entry(self, action, address, size, frames):
        if self.trace is not None:
            entry = {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time.time_ns() // 1000, "frames": frames}
            self.trace = [*self.trace[-self.limit :], entry] if len(self.trace) >= self.limit else (self.trace.append(entry) or self.trace)

    def obtain(self, size):
        size = -(-size // 512) * 512
        if self.allocated + size > self.capacity:
            self.ooms += 1
            for observer in self.observers:
                observer(0, size, self.capacity, self.capacity - self.allocated)
            raise OutOfMemoryError("CUDA out of memory.")
        stack = traceback.extract_stack()[:-2][::-1] if self.trace is not None else []
        frames = [{"filename": f.filename, "line": f.lineno, "name": f.name} for f in stack]
        address, self.next = self.next, self.next + size
        self.live[address] = (size, frames)
        self.allocated += size
        self.made += 1
        self.peak = max(self.peak, self.allocated)
        self.entry("segment_alloc", address, size, frames)
        self.entry("alloc", address, size, frames)
        return address

    def release(self, address):
        size, _ = self.live.pop(address)
        self.allocated -= size
        self.freed += 1
        for action in ("free_requested", "free_completed", "segment_free"):
            self.entry(action, address, size, [])

    def snapshot(self):
        segments = [
            {
                "device": 0,
                "address": address,
                "total_size": size,
                "allocated_size": size,
                "active_size": size,
                "requested_size": size,
                "stream": 0,
                "segment_type": "large",
                "segment_pool_id": (0, 0),
                "is_expandable": False,
                "frames": frames,
                "blocks": [{"address": address, "size": size, "requested_size": size, "state": "active_allocated", "frames": frames}],
            }
            for address, (size, frames) in self.live.items()
        ]
        return {"segments": segments, "device_traces": [list(self.trace or [])], "allocator_settings": {}, "external_annotations": []}


allocator = Allocator()


class Tensor:
    """Bytes on the device."""

    def __init__(self, n):
        cuda._lazy_init()
        self.address = allocator.obtain(n)

    def __del__(self):
        if hasattr(self, "address"):
            allocator.release(self.address)


class _C:
    @staticmethod
    def _cuda_init():
        pass

    @staticmethod
    def _cuda_isHistoryEnabled():
        return allocator.trace is not None

    @staticmethod
    def _cuda_memoryStats(device):
        def stat(current, peak=0):
            return {"all": {"current": current, "peak": peak, "allocated": 0, "freed": 0}}

        a = allocator
        bytes_ = stat(a.allocated, a.peak)
        return {
            "allocated_bytes": bytes_,
            "reserved_bytes": bytes_,
            "active_bytes": bytes_,
            "requested_bytes": bytes_,
            "inactive_split_bytes": stat(0),
            "segment": stat(len(a.live)),
            "num_alloc_retries": a.retries,
            "num_ooms": a.ooms,
            "allocation": {"all": {"current": len(a.live), "peak": 0, "allocated": a.made, "freed": a.freed}},
        }

    @staticmethod
    def _cuda_attach_out_of_memory_observer(observer):
        allocator.observers.append(observer)


from torch import autograd, cuda, optim, profiler, utils  # noqa: F401
