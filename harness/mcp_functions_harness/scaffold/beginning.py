"""`init DIR`: writes a project with one tool that asks, its test and its events; it pins the toolkit's version."""

import json
import shutil
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp_functions_harness import catalog, template
from mcp_functions_harness.problems import Problem, first_line
from mcp_functions_harness.scaffold import additions, blocks, files, samples, spelling

PACKAGE = "mcp-functions"
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
    """Write a project into a folder, which may have other files; return the text for the terminal.

    Raises:
        Problem: a file exists already, or the toolkit is not installed.
    """
    try:
        package = distribution(PACKAGE)
    except PackageNotFoundError as error:
        raise Problem(f"{PACKAGE} is not installed, so its version is unknown: pip install its wheel first") from error
    function = samples.copied(SAMPLE, name=SAMPLE)
    values = {"stack": spelling.stack(directory), "version": package.version, "block": blocks.text(function)}
    texts = {**files.tree("project", values), **function.files}
    # Most clients are of 2025, and each of their questions waits in the table.
    texts[template.FILE] = additions.with_addition(texts[template.FILE], "table")
    files.write(directory, texts)
    catalog.refresh(directory / "functions")
    is_here = directory.resolve() == Path.cwd()
    text = SUMMARY.format(
        directory=directory.resolve().name if is_here else directory,
        enter="" if is_here else f"\n  cd {directory}",
        count=len(texts) + 1,  # with the catalog
        version=package.version,
    )
    return text + _copy_toolkit(directory / WHEELS, origin(package))


def origin(package: Distribution) -> Path | None:
    """Return the wheel or the folder from which pip installed a package; None if it came from a package index.

    pip writes the origin into the file direct_url.json of the installed package (PEP 610).
    """
    try:
        direct_url = json.loads(package.read_text("direct_url.json") or "{}")
        address = urlsplit(direct_url.get("url", ""))
    except (ValueError, AttributeError):  # the file is no JSON object, so another tool wrote it
        return None
    return Path(url2pathname(address.path)) if address.scheme == "file" else None


def _copy_toolkit(wheels: Path, toolkit: Path | None) -> str:
    """Copy the toolkit's wheel if it was installed from a file, because no index may have it."""
    if toolkit is None:
        return ""
    if toolkit.suffix != ".whl":
        return NO_WHEEL.format(wheels=wheels, origin=toolkit)
    try:
        shutil.copy(toolkit, wheels)
    except OSError as error:
        text = f"the toolkit's wheel cannot be copied to {wheels}, copy it yourself: {first_line(error)}"
        raise Problem(text) from error
    return ""
