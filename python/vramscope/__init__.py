"""vramscope: where a deep-learning job's GPU memory went, and who holds it.

``vramscope run train.py`` records a program as it is. The functions here do the same from within a program, and say what
only the program knows: where its steps end, what its phases are, what should be gone. They are harmless where there is no
CUDA, no torch, or no recording. Sizes are in bytes, times in seconds.
"""

from __future__ import annotations

from vramscope.api import holders, is_recording, phase, report, snapshot, start, step, stop, watch

__all__ = ["holders", "is_recording", "phase", "report", "snapshot", "start", "step", "stop", "watch"]


def load_ipython_extension(shell: object) -> None:
    """``%load_ext vramscope``: adds ``%vramscope`` and ``%%vramscope`` to a notebook."""
    from vramscope import magic

    magic.register(shell)
