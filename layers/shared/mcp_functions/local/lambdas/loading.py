"""Loads many functions into one interpreter and keeps their modules apart, as separate Lambdas do.

On Lambda a function's folder is on `sys.path`, and so is the code of layers/common. Here each folder is a package with
a unique name. An absolute import inside it finds the folder's modules first, then its own copy of the common ones. So
two folders may both have a `forms.py`, and `sys.path` does not change.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

COMMON = Path("layers/common/python")  # in a project: modules that functions share; a layer, at /opt/python on Lambda

_numbers = count(1)


def common(directory: Path) -> Path:
    """Return where the functions of a directory have the modules that they share."""
    return directory.resolve().parent / COMMON


def holds(folder: Path, name: str) -> bool:
    """Whether a folder has a module or a package of this name."""
    return (folder / f"{name}.py").is_file() or any((folder / name).glob("*.py"))


class Folder(MetaPathFinder):
    """A folder of modules, importable until `close`. Its modules import each other by their file names."""

    def __init__(self, path: Path) -> None:
        """Make the folder importable."""
        self.path = path
        self.package = f"_function_{next(_numbers)}_{path.name}"
        importlib.invalidate_caches()
        sys.meta_path.insert(0, self)

    def load(self, module: str) -> ModuleType:
        """Import one module of the folder; an exception of the module passes through."""
        return importlib.import_module(f"{self.package}.{module}")

    def close(self) -> None:
        """Remove the folder and its modules."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in [name for name in sys.modules if name.partition(".")[0] == self.package]:
            del sys.modules[name]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of this folder; importlib calls it."""
        top, _, rest = fullname.partition(".")
        if top != self.package:
            return None
        if not rest:
            package = ModuleSpec(fullname, None, is_package=True)
            package.submodule_search_locations = [str(self.path), str(common(self.path.parent))]
            return package
        spec = PathFinder.find_spec(fullname, path, target)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, self)
        return spec

    def import_(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,  # noqa: A002 - the signature of __import__
        locals: Mapping[str, object] | None = None,  # noqa: A002
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> object:
        """Import like `__import__`, but look into the folder first."""
        top = name.partition(".")[0]
        if level or not (holds(self.path, top) or holds(common(self.path.parent), top)):
            return builtins.__import__(name, globals, locals, fromlist, level)
        module = builtins.__import__(f"{self.package}.{name}", globals, locals, fromlist, 0)
        return module if fromlist else sys.modules[f"{self.package}.{top}"]


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, folder: Folder) -> None:
        super().__init__(fullname, path)
        self._folder = folder

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._folder.import_}
        super().exec_module(module)

    def set_data(self, path: str, data: object, *, _mode: int = 0o666) -> None:
        """Write no bytecode, because SAM packages the folder."""
