import threading

import torch
from torch.cuda import memory  # noqa: F401

_tls = threading.local()
_queued_calls = []
_initialized = False


def _lazy_call(call):
    if _initialized:
        call()
    else:
        _queued_calls.append(call)


def _lazy_init():
    global _initialized
    if _initialized or hasattr(_tls, "is_initializing"):
        return
    _tls.is_initializing = True
    for call in _queued_calls:
        call()
    del _tls.is_initializing
    _initialized = True


def is_initialized():
    return _initialized


def device_count():
    return 1


def get_device_properties(device):
    class properties:
        name, total_memory = "Fake 1", torch.allocator.capacity

    return properties


def is_available():
    return True


def synchronize():
    pass


def memory_allocated(device=0):
    return torch.allocator.allocated


def max_memory_allocated(device=0):
    return torch.allocator.peak


def reset_peak_memory_stats(device=0):
    torch.allocator.peak = torch.allocator.allocated
