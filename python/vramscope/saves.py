"""What is saved at a moment: a snapshot, who holds the memory, what the program runs in."""

from __future__ import annotations

import os
from typing import Any, Union

from vramscope import collector, environment, holding
from vramscope.directory import ENVIRONMENT, Directory
from vramscope.history import History
from vramscope.interruption import is_of_the_program
from vramscope.options import Options
from vramscope.statistics import now_us

#: The number of the last step, and what counts it; None and None where nothing does.
Step = Union[tuple[int, str], tuple[None, None]]


class Saves:
    """Saves into a directory."""

    def __init__(self, options: Options, torch: Any, directory: Directory, started_us: int) -> None:
        self.options = options
        self.torch = torch
        self.directory = directory
        self.started_us = started_us
        #: What snapshots are taken of; None while there is no CUDA.
        self.history: History | None = None

    def save(self, name: str, step: Step) -> None:
        """Holders and a snapshot of the same moment: nothing may be collected in between."""
        with collector.at_rest():
            self.save_holders(f"{name}.holders.json", step)
            if self.history is not None:
                self.directory.save(f"{name}.pickle", self.history.save)
        self.directory.make_room()

    def save_holders(self, name: str, step: Step) -> None:
        """Who holds the memory now. Where that cannot be found, recording goes on without."""
        if not self.options.holders:
            return
        try:
            time_us = now_us()
            document = holding.find().to_dict()
            document["time_us"] = time_us
            document["step"], document["step_source"] = step
        except Exception as error:
            if is_of_the_program(error):
                raise
            self.options.holders = False
            self.directory.event("no-holders", reason=f"{type(error).__name__}: {error}")
            return
        self.directory.save_json(name, document)

    def describe(self) -> None:
        """What the program runs in; again once CUDA tells more. For a rank also in the directory that all share."""
        content = environment.describe(self.torch, self.options.command, self.started_us)
        self.directory.save_json(ENVIRONMENT, content)
        # Not to be dropped.
        self.directory.saved.pop(ENVIRONMENT, None)
        above = os.path.dirname(self.directory.path)
        if above == self.options.directory and not os.path.exists(os.path.join(above, ENVIRONMENT)):
            Directory(above, 0).save_json(ENVIRONMENT, {**content, "rank": None})
