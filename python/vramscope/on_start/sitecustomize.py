"""Begins the recording in a process that ``vramscope run`` started, before the program's first line.

Python imports it at its start because its directory is on ``PYTHONPATH``. It takes that away again, and hands over to the
``sitecustomize`` that would have been imported without it.
"""

import os
import sys


def _begin() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    sys.path_importer_cache.pop(here, None)
    try:
        # By its place, not by its name: the program may run in an environment without vramscope.
        from importlib.util import module_from_spec, spec_from_file_location

        home = os.path.dirname(here)
        file = os.path.join(home, "__init__.py")
        spec = spec_from_file_location("vramscope", file, submodule_search_locations=[home])
        assert spec is not None and spec.loader is not None
        sys.modules["vramscope"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        from vramscope.startup import begin

        begin()
    except Exception as error:
        sys.stderr.write(f"vramscope: nothing is recorded: {type(error).__name__}: {error}\n")


_begin()
sys.modules.pop("sitecustomize", None)
# Where there is none, Python is told so as it would be without this file.
import sitecustomize  # type: ignore[import-not-found]  # noqa: E402, F401
