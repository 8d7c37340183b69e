"""What the launcher and the process that it starts call things in the environment."""

from __future__ import annotations

import os

#: The settings of the recording, for the program's process.
SETTINGS = "VRAMSCOPE_RUN"
#: What ``PYTHONPATH`` was, where it was set.
PYTHONPATH = "VRAMSCOPE_PYTHONPATH"
#: The directory with our ``sitecustomize``.
ON_START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "on_start")
