"""What a program ran in: torch, the driver, devices, settings, its command."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from vramscope.place import rank, world_size

#: Variables that change how memory is obtained or what runs on the device. No others are written down: they may hold secrets.
SETTINGS = (
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUBLAS_WORKSPACE_CONFIG",
    "NCCL_BUFFSIZE",
    "NCCL_CUMEM_ENABLE",
    "NCCL_NVLS_ENABLE",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
)


def describe(torch: Any, command: str, started_us: int) -> dict[str, Any]:
    """The content of ``environment.json``. What cannot be told is null."""
    is_rank = world_size() > 1
    return {
        "command": command or " ".join([sys.executable, *sys.argv]),
        "started_us": started_us,
        "pid": os.getpid(),
        "rank": rank() if is_rank else None,
        "world_size": world_size() if is_rank else None,
        "vramscope": _version(),
        "python": sys.version.split()[0],
        "torch": str(getattr(torch, "__version__", "")) or None,
        "cuda": getattr(getattr(torch, "version", None), "cuda", None),
        "driver": driver(),
        "gpus": gpus(torch),
        "settings": {name: os.environ[name] for name in SETTINGS if name in os.environ},
    }


def gpus(torch: Any) -> list[dict[str, Any]]:
    """Names and bytes of the devices; none where CUDA has not been initialised, which is never done here."""
    try:
        if not torch.cuda.is_initialized() and not hasattr(torch.cuda._tls, "is_initializing"):
            return []
        properties = (torch.cuda.get_device_properties(device) for device in range(torch.cuda.device_count()))
        return [{"name": one.name, "total_bytes": one.total_memory} for one in properties]
    except Exception:
        return []


def driver() -> str | None:
    """The version of NVIDIA's kernel module."""
    try:
        with open("/proc/driver/nvidia/version") as file:
            found = re.search(r"Module\s+(?:for \S+\s+)?(\d+\.\d+[.\d]*)", file.readline())
        return found.group(1) if found else None
    except OSError:
        return None


def _version() -> str | None:
    try:
        from importlib.metadata import version

        return version("vramscope")
    except Exception:
        return None
