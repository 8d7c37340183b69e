"""Waits for the program to import torch, which is never imported here."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable


def call_when_imported(then: Callable[[ModuleType], object]) -> None:
    """Call once torch has been imported to its end: at once where it is there already."""
    torch = sys.modules.get("torch")
    if torch is not None and not getattr(getattr(torch, "__spec__", None), "_initializing", False):
        then(torch)
    else:
        sys.meta_path.insert(0, _Finder(then))


class _Finder:
    """Finds torch as the other finders do, and puts itself between its loader and the import."""

    def __init__(self, then: Callable[[ModuleType], object]) -> None:
        self.then = then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            return None
        for finder in list(sys.meta_path):
            spec: Any = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self)
                return spec
        return None


class _Loader:
    def __init__(self, loader: Any, finder: _Finder) -> None:
        self.loader = loader
        self.finder = finder

    def __getattr__(self, name: str) -> Any:
        # Whoever asks before the import for what else the loader can do.
        return getattr(self.loader, name)

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        # What torch and the program see of the import is as it would be.
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
            try:
                self.finder.then(module)
            except Exception as error:
                sys.stderr.write(f"vramscope: nothing is recorded: {type(error).__name__}: {error}\n")


# An error while torch is imported shows no frame of the import system, and should show none of ours: this is the name that
# Python goes by when it leaves them out.
_Loader.exec_module.__code__ = _Loader.exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
