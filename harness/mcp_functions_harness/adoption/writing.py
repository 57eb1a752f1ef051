"""`adopt --into functions/`: the folder of an adopted server, its block in template.yaml, and its test."""

from __future__ import annotations

import ast
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions_harness.checks import FOLDER
from mcp_functions_harness.checks.iam import SEAL
from mcp_functions_harness.problems import stop
from mcp_functions_harness.scaffold import editing, spelling
from mcp_functions_harness.scaffold.files import template
from mcp_functions_harness.scaffold.samples import Draft

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMMENT = "an adopted server, with all its tools"
TOOLKIT = "mcp_functions"  # every project has this package


class ServerFile(NamedTuple):
    """A server in a file: `server.py:server`."""

    path: Path
    variable: str

    @classmethod
    def parse(cls, text: str) -> ServerFile:
        """Read `FILE:VARIABLE`.

        Raises:
            Problem: it names no file of Python, or no variable.
        """
        file, _colon, variable = text.rpartition(":")
        if not file.endswith(".py") or not variable.isidentifier():
            stop(f"{text} is not FILE.py:VARIABLE, as in server.py:server")
        return cls(Path(file), variable)


def write(server: ServerFile, functions: Path, name: str | None) -> str:
    """Write the folder of an adopted server; return the text for the terminal.

    Args:
        server: the server that is adopted.
        functions: the project's `functions/`.
        name: the function's name; None: the name of the server's file, or of the folder of server.py and main.py.

    Raises:
        Problem: the server cannot be moved, or the project has its name already.
    """
    if functions.name != FOLDER:
        stop(f"--into names a project's {FOLDER}/ folder, and not {functions}")
    folder = name or _default_name(server.path)
    spelling.check(folder)
    files = _modules(server.path)
    values = {
        "name": folder,
        "file": server.path.name,
        "module": server.path.stem,
        "variable": server.variable,
        "imported": "server" if server.variable == "server" else f"{server.variable} as server",
    }
    texts = {f"{FOLDER}/{folder}/{file.name}": file.read_text(encoding="utf-8") for file in files}
    texts[f"{FOLDER}/{folder}/app.py"] = template("adopted/app.py", values)
    texts[f"{FOLDER}/{folder}/requirements.txt"] = "".join(f"{line}\n" for line in _requirements(files))
    texts[f"tests/functions/test_{folder}.py"] = template("adopted/test.py", values)
    return editing.add(functions.parent, Draft(folder, COMMENT, (SEAL,), files=texts))


def _default_name(path: Path) -> str:
    if path.stem in {"server", "main"}:
        return path.resolve().parent.name
    return path.stem


def _modules(path: Path) -> list[Path]:
    """Return the server's file, and the files beside it that it imports."""
    if path.name == "app.py":
        stop("functions/<name>/app.py is Lambda's entry point: rename the server's file first")
    files = [path]
    for file in files:  # the list grows by the files that each file imports
        for module in _imported(file):
            beside = path.with_name(f"{module}.py")
            if beside.exists() and beside not in files:
                files.append(beside)
    return files


def _imported(path: Path) -> Iterator[str]:
    """Return the first part of each name that a file imports.

    Raises:
        Problem: an import is relative, so the file belongs to a package.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            stop(
                f"{path}:{node.lineno} imports from its own package: put the package into requirements.txt, and write "
                "functions/<name>/app.py by hand, with `from package.module import server`"
            )
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)


def _requirements(files: Sequence[Path]) -> list[str]:
    """Return the lines of requirements.txt: the packages that the files import, in the versions installed here."""
    not_packages = {file.stem for file in files} | {TOOLKIT} | sys.stdlib_module_names
    modules = sorted({module for file in files for module in _imported(file)} - not_packages)
    distributions = metadata.packages_distributions()
    packages = {package for module in modules for package in distributions.get(module, ())}
    pinned = [f"{package}=={metadata.version(package)}" for package in packages]
    unknown = [f"{module}  # not installed here: name its package" for module in modules if module not in distributions]
    return [*sorted(pinned), *unknown]
