"""Where a recording goes: which directory, and which part of it is a process's own."""

from __future__ import annotations

import os
import sys
import time


def new_directory(out: str, pid: int) -> str:
    """The directory of a recording that begins now: ``OUT/<when>-<process>``.

    The ranks that a launcher started share one, named by when the launcher was started, and by its process.
    """
    if world_size() > 1:
        launcher = os.getppid()
        restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        again = "" if restarts in ("", "0") else f"-restart{restarts}"
        return os.path.join(out, f"{_stamp(_started_s(launcher))}-{launcher}{again}")
    return os.path.join(out, f"{_stamp(time.time())}-{pid}")


def part_of(directory: str, is_launched: bool) -> str:
    """The directory of this process's own files within a recording."""
    number = rank()
    if number is not None and world_size() > 1:
        return os.path.join(directory, f"rank{number}")
    # A process that the program started, and that is no rank.
    return directory if is_launched else os.path.join(directory, f"process{os.getpid()}")


def rank() -> int | None:
    """This process's rank, where it has one."""
    number = _number(("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"))
    return number if number is not None else _from_torch("get_rank")


def world_size() -> int:
    """Of how many ranks it is one; 1 where nothing says so."""
    number = _number(("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "PMI_SIZE"))
    return number or _from_torch("get_world_size") or 1


def link_latest(directory: str) -> None:
    """Let ``latest`` beside a recording lead to it. Of two that do so at once, one wins."""
    out, name = os.path.split(directory)
    link, new = os.path.join(out, "latest"), os.path.join(out, f".latest-{os.getpid()}")
    try:
        if os.path.lexists(link) and not os.path.islink(link):
            return
        os.symlink(name, new)
        os.replace(new, link)
    except OSError:
        # A disk without links: recordings have their names.
        pass


def _number(names: tuple[str, ...]) -> int | None:
    for name in names:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
    return None


def _from_torch(what: str) -> int | None:
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(getattr(distributed, what)())
    except (AttributeError, RuntimeError, ValueError):
        pass
    return None


def _stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H-%M-%S", time.localtime(seconds))


def _started_s(pid: int) -> float:
    """When a process was started, in seconds since 1970, as the kernel tells it: the same to all who ask."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        with open("/proc/stat", "rb") as file:
            boot = next(int(line.split()[1]) for line in file if line.startswith(b"btime"))
        return boot + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return time.time()
