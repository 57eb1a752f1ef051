"""Loads many functions into one interpreter and keeps their modules apart, as separate Lambdas do.

On Lambda a function's folder is on `sys.path`, and so is the code of layers/common. Here each folder is a package with
a unique name. An absolute import inside it finds the folder's modules first, then its own copy of the common ones. So
two folders may both have a `forms.py`, and `sys.path` does not change.

An import that fails on Lambda fails here too: of another function's folder, of a file elsewhere in the project, and a
relative import outside of a package.
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
    from types import CodeType, ModuleType

COMMON = Path("layers/common/python")  # in a project: modules that functions share; a layer, at /opt/python on Lambda
IN_THE_RUNTIME = sys.stdlib_module_names | {"awslambdaric", "mcp_functions"}

_numbers = count(1)


def common(directory: Path) -> Path:
    """Return where the functions of a directory have the modules that they share."""
    return directory.resolve().parent / COMMON


def holds(folder: Path, name: str) -> bool:
    """Whether a folder has a module or a package of this name."""
    return (folder / f"{name}.py").is_file() or any((folder / name).glob("*.py"))


def elsewhere(name: str, root: Path) -> str:
    """Return where a project has a module that Lambda does not get; nothing, if it is installed, or missing.

    Args:
        name: of the module, as an import outside of its folder names it.
        root: the project's folder.
    """
    spec = PathFinder.find_spec(name, [*sys.path, str(root)])
    if spec is None:
        return ""
    for place in [spec.origin] if spec.origin else spec.submodule_search_locations or ():
        path = Path(str(place)).resolve()
        if path.is_relative_to(root) and "site-packages" not in path.parts:
            return str(path.relative_to(root))
    return ""


class Folder(MetaPathFinder):
    """A folder of modules, importable until `close`. Its modules import each other by their file names."""

    def __init__(self, path: Path, package: str = "") -> None:
        """Make the folder importable.

        Args:
            path: of the folder.
            package: its name for importers, "functions.add" in tests, which import the shared code by `sys.path`. If it
                is left out, the name is unique, and the folder gets its own copy of the shared code.
        """
        self.path, self._root = path, path.parent.parent.resolve()
        self._is_unique = not package
        self.package = package or f"_function_{next(_numbers)}_{path.name}"
        self._elsewhere: dict[str, str] = {}
        importlib.invalidate_caches()
        sys.meta_path.insert(0, self)

    def load(self, module: str) -> ModuleType:
        """Import one module of the folder; an exception of the module passes through."""
        return importlib.import_module(f"{self.package}.{module}")

    def close(self) -> None:
        """Remove the folder and its modules."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        inside = f"{self.package}."
        for name in [name for name in sys.modules if f"{name}.".startswith(inside)]:
            del sys.modules[name]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of this folder; importlib calls it."""
        if fullname == self.package and self._is_unique:
            package = ModuleSpec(fullname, None, is_package=True)
            package.submodule_search_locations = [str(self.path), str(common(self.path.parent))]
            return package
        if not fullname.startswith(f"{self.package}."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.path, self)
        return spec

    def import_(
        self,
        name: str,
        namespace: Mapping[str, object] | None = None,
        local: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> object:
        """Import like `__import__`, but look into the folder first.

        Raises:
            ImportError: Lambda would not find it.
        """
        __tracebackhide__ = True  # of pytest
        top = name.partition(".")[0]
        if level:
            self._check_relative(str((namespace or {}).get("__package__")), level)
            return builtins.__import__(name, namespace, local, fromlist, level)
        if not self._has(top):
            self._check_elsewhere(top)
            return builtins.__import__(name, namespace, local, fromlist, level)
        module = builtins.__import__(f"{self.package}.{name}", namespace, local, fromlist, 0)
        return module if fromlist else sys.modules[f"{self.package}.{top}"]

    def _has(self, top: str) -> bool:
        return holds(self.path, top) or (self._is_unique and holds(common(self.path.parent), top))

    def _check_relative(self, package: str, level: int) -> None:
        __tracebackhide__ = True
        if level > len(package.removeprefix(self.package).split(".")) - 1:
            outside = "attempted relative import with no known parent package: Lambda loads app.py without a package"
            raise ImportError(outside)

    def _check_elsewhere(self, top: str) -> None:
        __tracebackhide__ = True
        if top in IN_THE_RUNTIME or holds(common(self.path.parent), top):
            return
        if top not in self._elsewhere:
            self._elsewhere[top] = elsewhere(top, self._root)
        if self._elsewhere[top]:
            missing = f"No module named {top!r} on Lambda: move {self._elsewhere[top]} to {COMMON}/"
            raise ModuleNotFoundError(missing, name=top)


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, folder: Folder) -> None:
        super().__init__(fullname, path)
        self._folder = folder

    def exec_module(self, module: ModuleType) -> None:
        __tracebackhide__ = True
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._folder.import_}
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:
        """Compile the file. Bytecode may be of an earlier save in the same second, and SAM would package it."""
        return self.source_to_code(self.get_data(self.path), self.get_filename(fullname))
