"""`adopt --into functions/`: the folder of an adopted server, its block in template.yaml, and its test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcp_functions_harness.checks import FOLDER
from mcp_functions_harness.checks.iam import SEAL
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.scaffold import editing, spelling
from mcp_functions_harness.scaffold.files import template
from mcp_functions_harness.scaffold.samples import Draft

if TYPE_CHECKING:
    from mcp_functions_harness.adoption.sources import Sources

COMMENT = "an adopted server, with all its tools"


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
            raise Problem(f"{text} is not FILE.py:VARIABLE, as in server.py:server")
        return cls(Path(file), variable)


def write(sources: Sources, variable: str, requirements: list[str], functions: Path, name: str | None) -> str:
    """Write the folder of an adopted server; return the text for the terminal.

    Args:
        sources: the files of the server.
        variable: the name of the server in its module.
        requirements: the lines of requirements.txt.
        functions: the project's `functions/`.
        name: the function's name; None: the name of the server's file, or of the folder of server.py and main.py.

    Raises:
        Problem: the project cannot have the function, so nothing was written.
    """
    if functions.name != FOLDER:
        raise Problem(f"--into names a project's {FOLDER}/ folder, and not {functions}")
    folder = name or _default_name(sources.path)
    try:
        spelling.check(folder)
    except Problem as error:
        raise Problem(f"{error} (choose a name with --name)") from error
    values = {
        "name": folder,
        "file": sources.path.name,
        "path": next(iter(sources.files)),
        "module": sources.module,
        "variable": variable,
        "imported": "server" if variable == "server" else f"{variable} as server",
    }
    texts = {
        f"{FOLDER}/{folder}/app.py": template("adopted/app.py", values),
        f"{FOLDER}/{folder}/requirements.txt": "".join(f"{line}\n" for line in requirements),
        f"tests/functions/test_{folder}.py": template("adopted/test.py", values),
    }
    copies = {f"{FOLDER}/{folder}/{path}": file for path, file in sources.files.items()}
    return editing.add(functions.parent, Draft(folder, COMMENT, (SEAL,), files=texts, copies=copies))


def _default_name(path: Path) -> str:
    if path.stem in {"server", "main", "__init__", "__main__"}:
        return path.resolve().parent.name
    return path.stem
