"""A callback for Lightning: ``Trainer(callbacks=[vramscope.lightning.VramscopeCallback()])``."""

from __future__ import annotations

import importlib
from typing import Any

import vramscope


def _callback_class() -> type:
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return importlib.import_module(name).Callback
        except ImportError:
            continue
    raise ImportError("Lightning is not installed; hint: `pip install lightning`")


class VramscopeCallback(_callback_class()):  # type: ignore[misc]
    """Records the training: its steps, evaluation as a phase of its own, and a snapshot where it fails.

    A ``vramscope run`` around the program does the same without a callback; with both, this one only marks steps and phases.
    """

    def __init__(self) -> None:
        super().__init__()
        self._started = False
        self._phase: Any = None

    def setup(self, trainer: Any, pl_module: Any, stage: Any = None) -> None:
        """Starts recording, unless somebody did before."""
        if not vramscope.is_recording():
            vramscope.start()
            self._started = True

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        """One step is done."""
        vramscope.step()

    def on_validation_start(self, *_: Any, **__: Any) -> None:
        """Evaluation may use other memory than training."""
        self._enter("validation")

    def on_validation_end(self, *_: Any, **__: Any) -> None:
        """Back to training."""
        self._leave()

    def on_exception(self, *_: Any, **__: Any) -> None:
        """Keeps what is held at the moment of the failure."""
        vramscope.snapshot()

    def teardown(self, trainer: Any, pl_module: Any, stage: Any = None) -> None:
        """Stops what :meth:`setup` started."""
        self._leave()
        if self._started:
            vramscope.stop()
            self._started = False

    def _enter(self, name: str) -> None:
        self._leave()
        self._phase = vramscope.phase(name)
        self._phase.__enter__()

    def _leave(self) -> None:
        if self._phase is not None:
            self._phase.__exit__(None, None, None)
            self._phase = None
