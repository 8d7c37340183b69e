"""A callback for Lightning: ``Trainer(callbacks=[vramscope.lightning.VramscopeCallback()])``."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import vramscope
from vramscope import verdict

#: The names of Lightning: the package of today, and the one before it, which is still kept.
NAMES = ("lightning.pytorch", "pytorch_lightning")


def _callback_class() -> Any:
    # Of two that are installed, the one that the program uses.
    for name in sorted(NAMES, key=lambda name: name not in sys.modules):
        try:
            return importlib.import_module(name).Callback
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
    raise ImportError("Lightning is not installed; hint: `pip install lightning`")


if TYPE_CHECKING:
    Callback = object
else:
    Callback = _callback_class()


class VramscopeCallback(Callback):
    """Records the training, with evaluation as phases of their own, and says at the end what was found.

    A step is a step of an optimizer, once a batch at most: batches whose gradients are only accumulated are part of it.
    A ``vramscope run`` around the program does the same without a callback; with both, this one only marks steps and phases.
    """

    def __init__(self, **settings: Any) -> None:
        """How it records.

        Args:
            **settings: As of :func:`vramscope.start`: ``out``, ``steps``, ``stacks``, ``always``, ``quiet``, …
        """
        super().__init__()
        self._settings = settings
        self._started = False
        self._phase: vramscope.phase | None = None
        #: Steps of optimizers so far, as the trainer counts them.
        self._steps = 0

    def setup(self, trainer: Any, pl_module: Any, stage: Any = None) -> None:
        """Starts recording, unless somebody did before."""
        if not vramscope.is_recording():
            vramscope.start(**self._settings)
            self._started = True

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """It may go on from a checkpoint."""
        self._steps = trainer.global_step

    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        """A batch is done."""
        if trainer.global_step != self._steps:
            self._steps = trainer.global_step
            vramscope.step()

    def on_validation_start(self, *_: Any, **__: Any) -> None:
        """Evaluation may use other memory than training."""
        self._enter("validation")

    def on_validation_end(self, *_: Any, **__: Any) -> None:
        """Back to training."""
        self._leave()

    def on_test_start(self, *_: Any, **__: Any) -> None:
        """A phase of its own."""
        self._enter("test")

    def on_test_end(self, *_: Any, **__: Any) -> None:
        """The end of it."""
        self._leave()

    def on_predict_start(self, *_: Any, **__: Any) -> None:
        """A phase of its own."""
        self._enter("predict")

    def on_predict_end(self, *_: Any, **__: Any) -> None:
        """The end of it."""
        self._leave()

    def on_exception(self, *_: Any, **__: Any) -> None:
        """Keeps what is held at the moment of the failure; no other hook is called after it."""
        vramscope.snapshot()
        self._end()

    def teardown(self, trainer: Any, pl_module: Any, stage: Any = None) -> None:
        """Stops what :meth:`setup` started, and says what was found."""
        self._end()

    def _end(self) -> None:
        self._leave()
        if self._started:
            self._started = False
            verdict.end_and_say()

    def _enter(self, name: str) -> None:
        self._leave()
        self._phase = vramscope.phase(name)
        self._phase.__enter__()

    def _leave(self) -> None:
        if self._phase is not None:
            self._phase.__exit__(None, None, None)
            self._phase = None
