"""Imports the modules of many functions into one interpreter, and keeps them apart as separate Lambdas do.

On Lambda, `import forms` in functions/add/app.py finds functions/add/forms.py. Here other functions may have a forms.py
too, so each folder is a package with a name of its own:

1. `Folder.load("app")` imports the module `_function_1_add.app`. `Folder.find_spec` tells Python where it is.
2. `_Loader` runs the module with `Folder.import_` in place of `__import__`.
3. So `import forms` in the module calls `Folder.import_`, which imports `_function_1_add.forms`.

`Folder.import_` looks into the folder, then into layers/common, and leaves all other modules to Python. An import that
would fail on Lambda fails here too.
"""

import builtins
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import Self

from mcp_functions_harness.lambdas import habits
from mcp_functions_harness.lambdas.modules import COMMON, IN_THE_RUNTIME, common, elsewhere, has_module

_numbers = count(1)  # make the names of packages unique


class Folder(MetaPathFinder):
    """A function's folder, whose modules can be imported until `close`."""

    def __init__(
        self, path: Path, package: str, *, has_own_common: bool, told: Callable[[Exception], Exception] | None = None
    ) -> None:
        """Make the folder importable.

        Args:
            path: the folder.
            package: the name of the package that the folder becomes.
            has_own_common: whether the package has its own copy of the modules in layers/common. Otherwise they are
                found through `sys.path`.
            told: makes the exception that a module raises which does not load; without it, the module's own is raised.
        """
        self.told = told
        self._path = path
        self._package = package
        self._has_own_common = has_own_common
        self._common = common(path.parent)
        importlib.invalidate_caches()
        sys.meta_path.insert(0, self)

    @classmethod
    def isolated(cls, path: Path) -> Self:
        """Make a folder importable that shares no module with any other folder."""
        return cls(path, f"_function_{next(_numbers)}_{path.name}", has_own_common=True)

    @classmethod
    def in_tests(cls, path: Path, told: Callable[[Exception], Exception]) -> Self:
        """Make a folder importable for tests, which import `functions.add.app`, and layers/common by `sys.path`."""
        return cls(path, f"{path.parent.name}.{path.name}", has_own_common=False, told=told)

    def load(self, module: str) -> ModuleType:
        """Import one module of the folder; an exception of the module passes through."""
        return importlib.import_module(f"{self._package}.{module}")

    def close(self) -> None:
        """Remove the folder and its modules."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in list(sys.modules):
            if name == self._package or name.startswith(f"{self._package}."):
                del sys.modules[name]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Tell Python where a module of this folder is; None for any other module."""
        if fullname == self._package and self._has_own_common:
            package = ModuleSpec(fullname, None, is_package=True)
            package.submodule_search_locations = [str(self._path), str(self._common)]
            return package
        if not fullname.startswith(f"{self._package}."):
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
        """Import for a module of this folder; see `__import__` in Python's documentation.

        Raises:
            ImportError: Lambda would not find the module.
        """
        __tracebackhide__ = True  # pytest leaves this frame out of its tracebacks
        if level > 0:
            self._check_relative(str((namespace or {}).get("__package__")), level)
            return builtins.__import__(name, namespace, local, fromlist, level)
        top = name.partition(".")[0]
        if not self._has(top):
            self._check_absolute(top)
            return builtins.__import__(name, namespace, local, fromlist, 0)
        module = builtins.__import__(f"{self._package}.{name}", namespace, local, fromlist, 0)
        if fromlist:
            return module
        return sys.modules[f"{self._package}.{top}"]  # `import a.b` binds a

    def _has(self, top: str) -> bool:
        return has_module(self._path, top) or (self._has_own_common and has_module(self._common, top))

    def _check_relative(self, importing_package: str, level: int) -> None:
        """Refuse a relative import that leaves the packages inside the folder."""
        __tracebackhide__ = True
        depth = importing_package.removeprefix(self._package).count(".")  # 0 for app.py
        if level > depth:
            outside = "attempted relative import with no known parent package: Lambda loads app.py without a package"
            raise ImportError(outside)

    def _check_absolute(self, top: str) -> None:
        """Refuse a module that is elsewhere in the project, because Lambda would not find it."""
        __tracebackhide__ = True
        if top in IN_THE_RUNTIME or has_module(self._common, top):
            return
        project = self._path.parent.parent.resolve()
        path = elsewhere(top, project)
        if path:
            raise ModuleNotFoundError(f"No module named {top!r} on Lambda: move {path} to {COMMON}/", name=top)


class _Loader(SourceFileLoader):
    """Runs a module of a folder with the folder's `import_` as its `__import__`."""

    def __init__(self, fullname: str, path: str, folder: Folder) -> None:
        super().__init__(fullname, path)
        self._folder = folder

    def exec_module(self, module: ModuleType) -> None:
        __tracebackhide__ = True
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._folder.import_}
        try:
            super().exec_module(module)
        except Exception as error:
            if self._folder.told is None:
                raise
            raise self._folder.told(error) from error

    def get_code(self, fullname: str) -> CodeType:
        """Compile the file on each import, and write no bytecode.

        SAM would package the bytecode. It may also be older than a file that was saved twice in one second.
        """
        source = self.get_data(self.path)
        habits.check(source, self.path)
        return self.source_to_code(source, self.get_filename(fullname))
