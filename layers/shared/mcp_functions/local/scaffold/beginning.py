"""`init DIR`: writes a project with one tool that asks, its test and its events; it pins the toolkit's version."""

from __future__ import annotations

import shutil
from pathlib import Path

from mcp_functions.local import catalog
from mcp_functions.local.problems import first_line, stop
from mcp_functions.local.scaffold import blocks, files, samples, spelling, toolkit

SAMPLE = "book_flight"  # the name of the sample that a new project has as its only function
WHEELS = "layers/dependencies/wheels"  # where a project keeps packages that no index has

SUMMARY = """\
{directory} is a project of {count} files, which pins mcp-functions {version}.
{enter}
  make test     the function's test, and whether everything agrees
  make demo     calls the tool, and asks you its question
  make serve    for any MCP client
  make build    what `make deploy` sends; README.md says the rest"""

NO_WHEEL = """

The toolkit here was not installed from a wheel. The project installs it from a wheel, so build that once:
  python -m pip wheel --no-deps --wheel-dir {wheels} {origin}"""


def init(directory: Path) -> str:
    """Write a project.

    Args:
        directory: the project's folder; it may exist, if it has none of the project's files.

    Returns:
        The text for the terminal.

    Raises:
        Problem: a file exists already, or the toolkit is not installed.
    """
    package = toolkit.installed()
    function = samples.copied(SAMPLE, name=SAMPLE)
    values = {"stack": spelling.stack(directory), "version": package.version, "block": blocks.block(function)}
    texts = {**files.tree("project", values), **function.files}
    files.write(directory, texts)
    catalog.write(directory / "functions", catalog.generate(directory / "functions"))
    if directory.resolve() == Path.cwd():
        enter = ""
        shown_directory = directory.resolve().name
    else:
        enter = f"\n  cd {directory}"
        shown_directory = str(directory)
    count = len(texts) + 1  # with the catalog
    text = SUMMARY.format(directory=shown_directory, enter=enter, count=count, version=package.version)
    return text + _copy_toolkit(directory / WHEELS, toolkit.origin(package))


def _copy_toolkit(wheels: Path, origin: Path | None) -> str:
    """Copy the toolkit's wheel if it was installed from a file, because no index may have it."""
    if origin is None:
        return ""
    if origin.suffix != ".whl":
        return NO_WHEEL.format(wheels=wheels, origin=origin)
    try:
        shutil.copy(origin, wheels)
    except OSError as error:
        stop(f"the toolkit's wheel cannot be copied to {wheels}, copy it yourself: {first_line(error)}", after=error)
    return ""
