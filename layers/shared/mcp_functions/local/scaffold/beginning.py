"""`init DIR`: a project with one tool that asks, its test and its events; it pins the version that wrote it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from mcp_functions.local import catalog
from mcp_functions.local.problems import Problem, first_line
from mcp_functions.local.scaffold import blocks, files, samples, spelling, toolkit

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "book_flight"
WHEELS = "layers/dependencies/wheels"

WRITTEN = """\
{directory} is a project of {count} files, which pins mcp-functions {version}.

  cd {directory}
  make test     the function's test, and whether everything agrees
  make demo     the official client calls the tool and asks you its question
  make serve    for any MCP client
  make build    what `make deploy` sends; README.md says the rest"""

FOLDER = """

The toolkit here was installed from a folder. The project installs it from a wheel, so build that once:
  python -m pip wheel --no-deps --wheel-dir {wheels} {folder}"""


def init(directory: Path) -> str:
    """Write a project.

    Args:
        directory: where; it may be there, as long as no file of the project is.

    Returns:
        What to say about it.

    Raises:
        Problem: something is in the way, or the toolkit is not installed.

    """
    package = toolkit.installed()
    sample = samples.sample(FIRST, FIRST)
    values = {"stack": spelling.stack(directory), "version": package.version, "block": blocks.block(sample)}
    texts = {**files.tree("project", values), **sample.files}
    files.write(directory, texts)
    catalog.write(directory / "functions", catalog.generate(directory / "functions"))
    said = WRITTEN.format(directory=directory, count=len(texts) + 1, version=package.version)
    return said + _brought(directory / WHEELS, toolkit.origin(package))


def _brought(wheels: Path, origin: Path | None) -> str:
    """Bring the toolkit along, if pip had it from a file: no index may have it."""
    if origin is None:
        return ""
    if origin.is_dir():
        return FOLDER.format(wheels=wheels, folder=origin)
    try:
        shutil.copy(origin, wheels)
    except OSError as error:
        problem = f"the toolkit's wheel cannot be copied to {wheels}, copy it yourself: {first_line(error)}"
        raise Problem(problem) from error
    return ""
