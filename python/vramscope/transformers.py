"""A callback for the Hugging Face Trainer: ``Trainer(callbacks=[vramscope.transformers.VramscopeCallback()])``."""

from __future__ import annotations

from typing import Any

import vramscope

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError("transformers is not installed; hint: `pip install transformers`") from error


class VramscopeCallback(TrainerCallback):
    """Records the training: a step for each step of the optimizer.

    A ``vramscope run`` around the program does the same without a callback; with both, this one only marks steps.
    """

    def __init__(self) -> None:
        self._started = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Starts recording, unless somebody did before."""
        if not vramscope.is_recording():
            vramscope.start()
            self._started = True

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """One step of the optimizer is done."""
        vramscope.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stops what :meth:`on_train_begin` started."""
        if self._started:
            vramscope.stop()
            self._started = False
