"""The files of a server, as `adopt` reads and copies them, and the modules of packages that they import.

    src/weather/server.py    from .forecast import forecast    the whole folder weather/, which is a package
    server.py                from prices import PRICES         prices.py beside it
    server.py                import httpx                      a module of an installed package
    server.py                open(HERE / "cities.json")        a file or folder beside it that the source names

Files are found by their imports, and nothing is run. An import by a computed name is not seen.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_functions_harness.adoption.syntax import module_of
from mcp_functions_harness.checks.imports import parts_that_run
from mcp_functions_harness.problems import Problem, first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

ENTRY_POINT = "app.py"
# Modules that need no file and no package of the server.
ALWAYS_THERE = {*sys.stdlib_module_names, "mcp_functions", "mcp_functions_harness"}
INSTALLED = ("site-packages", "dist-packages")  # folders of installed packages
NOT_COPIED = ("__pycache__", "node_modules", "tests", "test", "venv")  # folders of a package
MAX_PATH = 200  # no path is longer


class Sources:
    """The files of one server.

    Attributes:
        path: the server's file, as the user named it.
        module: its dotted name as the function imports it, for example "weather.server".
        files: each file that is copied, by its path in the function's folder. The server's file is the first.
        trees: those of them that are Python, parsed.
        packages: the dotted names of modules that the files import from installed packages.
        missing: the names of modules that are not installed here -> a place that imports them.
    """

    def __init__(self, path: Path) -> None:
        """Find the files.

        Raises:
            Problem: a file is missing or is not Python, or the server's file has the name of Lambda's entry point.
        """
        self.path = path
        self._root = _root_of(path)
        inside = path.resolve().relative_to(self._root)
        if str(inside) == ENTRY_POINT:
            raise Problem(f"functions/<name>/{ENTRY_POINT} is Lambda's entry point: rename the server's file first")
        parts = [*inside.parts[:-1], inside.stem]
        self.module = ".".join(part for part in parts if part != "__init__")
        self.files: dict[str, Path] = {}
        self.trees: dict[str, ast.Module] = {}
        self.packages: set[str] = set()
        self.missing: dict[str, str] = {}
        self._add_file(path.resolve(), self._root)
        self.add(self.module)

    def shown(self, name: str) -> str:
        """Return the path of a file for the terminal: relative to the folder where the command runs, if it is there."""
        if self.files[name] == self.path.resolve():
            return str(self.path)
        here = Path.cwd()
        return str(self.files[name].relative_to(here) if self.files[name].is_relative_to(here) else self.files[name])

    def add(self, module: str) -> bool:
        """Add a module that the server imports, by its dotted name; return whether it is new and was found."""
        first = module.partition(".")[0]
        if first in ALWAYS_THERE:
            return False
        before = (len(self.files), len(self.packages))
        spec = PathFinder.find_spec(first, [str(self._root)]) or _find_installed(first)
        if spec is None:
            return False
        folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
        file = Path(spec.origin) if spec.origin else None
        if any(part in INSTALLED for part in (file or folders[0]).parts):
            self.packages.add(module)
        elif folders:
            self._add_package(folders[0])
        elif file:
            self._add_file(file, file.parent)
        return before != (len(self.files), len(self.packages))

    def _add_package(self, folder: Path) -> None:
        """Add all files of a package: it may import them by computed names, and read the others."""
        for file in _files_in(folder):
            self._add_file(file, folder.parent)

    def _add_file(self, file: Path, root: Path) -> None:
        """Add a file, what it imports, and the files beside it that it names."""
        name = file.relative_to(root).as_posix()
        if name in self.files:
            return
        self.files[name] = file
        if file.suffix != ".py":
            return
        tree = _parsed(self.shown(name), file)
        self.trees[name] = tree
        package = name.split("/")[:-1]
        for module, line in _imported(tree, package):
            first = module.partition(".")[0]
            if not self.add(module) and not self._is_known(first):
                self.missing.setdefault(first, f"{self.shown(name)}:{line}")
        if not package:
            for named in _named_files(tree, file.parent):
                self._add_file(named, root)

    def _is_known(self, first: str) -> bool:
        """Whether a module is one of Python, of an added file or of an installed package, by the start of its name."""
        if first in ALWAYS_THERE:
            return True
        own = {name.partition("/")[0].removesuffix(".py") for name in self.files}
        return first in own or any(module.partition(".")[0] == first for module in self.packages)


def _parsed(shown: str, file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes())
    except (OSError, ValueError, SyntaxError) as error:
        raise Problem(f"{shown} cannot be read as Python: {first_line(error)}") from error


def _root_of(path: Path) -> Path:
    """Return the folder from which a server's file is imported.

    It is the first folder that is no package. A file of a package without `__init__.py` shows by its imports how many
    folders belong to the package: `from ..tools import x`, or `from src.tools import x` in src/server.py.
    """
    file = path.resolve()
    folder = file.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    tree = _parsed(str(path), file)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    dots = max((node.level for node in imports), default=0)
    while len(file.parent.relative_to(folder).parts) < dots:
        folder = folder.parent
    starts = {str(node.module).partition(".")[0] for node in imports if not node.level}
    for outer in [folder, *folder.parents[:2]]:
        if outer.name in starts and not _is_module(folder, outer.name) and not _find_installed(outer.name):
            return outer.parent
    return folder


def _is_module(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").exists() or (folder / name).is_dir()


def _find_installed(first: str) -> importlib.machinery.ModuleSpec | None:
    """Find a module that this environment can import, by the first part of its name."""
    try:
        return importlib.util.find_spec(first)
    except (ImportError, ValueError):  # a module that is loaded, and has no spec
        return None


def _imported(tree: ast.Module, package: list[str]) -> Iterator[tuple[str, int]]:
    """Return the dotted names of the modules that a file of a package imports, with their lines."""
    nodes: list[ast.AST] = [tree]
    for node in nodes:  # the list grows by the parts of each node
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            module = module_of(node, package)
            if module:
                yield module, node.lineno
        nodes += parts_that_run(node)


def _files_in(folder: Path) -> Iterator[Path]:
    """Return the files of a folder, without hidden ones and tests."""
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        is_left_out = any(part.startswith(".") or part in NOT_COPIED for part in parts)
        if file.is_file() and not is_left_out and file.suffix != ".pyc":
            yield file


def _named_files(tree: ast.Module, folder: Path) -> Iterator[Path]:
    """Return the files beside a module, and in folders beside it, that its source names; no hidden one, as .env."""
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    for text in dict.fromkeys(texts):
        parts = text.strip("/").removeprefix("./").split("/")
        if not all(part.isprintable() and part.strip(".") and part[:1] != "." for part in parts):
            continue
        named = folder.joinpath(*parts)
        if len(text) > MAX_PATH or not named.exists():
            continue
        if named.is_dir():
            yield from _files_in(named)
        elif named.suffix != ".py":
            yield named
