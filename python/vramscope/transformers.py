"""A callback for the Hugging Face Trainer: ``Trainer(callbacks=[vramscope.transformers.VramscopeCallback()])``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import vramscope
from vramscope import verdict

if TYPE_CHECKING:
    TrainerCallback = object
else:
    try:
        from transformers import TrainerCallback
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        raise ImportError("transformers is not installed; hint: `pip install transformers`") from error


class VramscopeCallback(TrainerCallback):
    """Records the training, with evaluation as a phase of its own, and says at the end what was found.

    A step is a step of the optimizer. A ``vramscope run`` around the program does the same without a callback; with both,
    this one only marks steps and phases.
    """

    def __init__(self, **settings: Any) -> None:
        """How it records.

        Args:
            **settings: As of :func:`vramscope.start`: ``out``, ``steps``, ``stacks``, ``always``, ``quiet``, …
        """
        self._settings = settings
        self._started = False
        self._phase: vramscope.phase | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Starts recording, unless somebody did before."""
        if not vramscope.is_recording():
            vramscope.start(**self._settings)
            self._started = True

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Training goes on, also after an evaluation that did not end as it should."""
        self._leave()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """One step of the optimizer is done."""
        vramscope.step()
        self._enter_if(control.should_evaluate)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An evaluation may be next."""
        self._enter_if(control.should_evaluate)

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A batch of an evaluation is done that the program has asked for itself, of whose beginning nobody tells."""
        self._enter_if(True)

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Back to training."""
        self._leave()

    def on_predict(self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any) -> None:
        """The end of a prediction."""
        self._leave()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stops what :meth:`on_train_begin` started, and says what was found."""
        self._leave()
        if self._started:
            self._started = False
            verdict.end_and_say()

    def _enter_if(self, is_evaluating: bool) -> None:
        if is_evaluating and self._phase is None:
            self._phase = vramscope.phase("evaluation")
            self._phase.__enter__()

    def _leave(self) -> None:
        if self._phase is not None:
            self._phase.__exit__(None, None, None)
            self._phase = None
