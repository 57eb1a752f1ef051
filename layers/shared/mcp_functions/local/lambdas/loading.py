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

COMMON = Path("layers/common/python")  # modules that a project's functions share; on Lambda the layer /opt/python
IN_THE_RUNTIME = sys.stdlib_module_names | {"awslambdaric", "mcp_functions"}  # modules that every function finds

_numbers = count(1)  # make the names of packages unique


def common(directory: Path) -> Path:
    """Return the folder of the modules that the functions of a directory share."""
    return directory.resolve().parent / COMMON


def has_module(folder: Path, name: str) -> bool:
    """Whether a folder has a module or a package of this name."""
    return (folder / f"{name}.py").is_file() or any((folder / name).glob("*.py"))


def elsewhere(name: str, root: Path) -> str:
    """Return the path of a module in a project that Lambda does not get; "" if it is installed, or missing.

    Args:
        name: the module's name, as an import outside of its folder writes it.
        root: the project's folder.
    """
    spec = PathFinder.find_spec(name, [*sys.path, str(root)])
    if spec is None:
        return ""
    # A package without an __init__.py has no origin, but the folders of its modules.
    places = [spec.origin] if spec.origin else spec.submodule_search_locations
    for place in places or ():
        path = Path(str(place)).resolve()
        if path.is_relative_to(root) and "site-packages" not in path.parts:
            return str(path.relative_to(root))
    return ""


class Folder(MetaPathFinder):
    """A folder of modules, importable until `close`. Its modules import each other by their file names."""

    def __init__(self, path: Path, package: str = "") -> None:
        """Make the folder importable.

        Args:
            path: the folder.
            package: its name for importers, "functions.add" in tests, which import the shared code by `sys.path`. If it
                is left out, the name is unique, and the folder gets its own copy of the shared code.
        """
        self.path = path
        self._root = path.parent.parent.resolve()
        self._is_unique = not package
        self.package = package or f"_function_{next(_numbers)}_{path.name}"
        self._elsewhere: dict[str, str] = {}  # the results of `elsewhere`, by module
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
        __tracebackhide__ = True  # pytest leaves this frame out of its tracebacks
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
        return has_module(self.path, top) or (self._is_unique and has_module(common(self.path.parent), top))

    def _check_relative(self, package: str, level: int) -> None:
        """Refuse a relative import that leaves the packages inside the folder."""
        __tracebackhide__ = True
        depth = package.removeprefix(self.package).count(".")
        if level > depth:
            outside = "attempted relative import with no known parent package: Lambda loads app.py without a package"
            raise ImportError(outside)

    def _check_elsewhere(self, top: str) -> None:
        """Refuse a module that is elsewhere in the project, because Lambda would not find it."""
        __tracebackhide__ = True
        if top in IN_THE_RUNTIME or has_module(common(self.path.parent), top):
            return
        if top not in self._elsewhere:
            self._elsewhere[top] = elsewhere(top, self._root)
        if self._elsewhere[top]:
            missing = f"No module named {top!r} on Lambda: move {self._elsewhere[top]} to {COMMON}/"
            raise ModuleNotFoundError(missing, name=top)


class _Loader(SourceFileLoader):
    """Runs a module of a folder with an `__import__` of its own, which looks into the folder first."""

    def __init__(self, fullname: str, path: str, folder: Folder) -> None:
        super().__init__(fullname, path)
        self._folder = folder

    def exec_module(self, module: ModuleType) -> None:
        __tracebackhide__ = True
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._folder.import_}
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:
        """Compile the file, and keep no bytecode: SAM would package it.

        Bytecode may also be older than the file, if the file was saved twice in one second.
        """
        return self.source_to_code(self.get_data(self.path), self.get_filename(fullname))
