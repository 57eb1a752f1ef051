"""The installed toolkit: its version, which a new project pins, and its wheel, if pip installed it from one."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from mcp_functions.local.problems import stop

NAME = "mcp-functions"


def installed() -> Distribution:
    """Find the toolkit among the installed packages.

    Raises:
        Problem: it is importable, but not installed.
    """
    try:
        return distribution(NAME)
    except PackageNotFoundError as error:
        stop(f"{NAME} is not installed, so its version is unknown: pip install its wheel first", after=error)


def origin(toolkit: Distribution) -> Path | None:
    """Return the wheel or the folder from which pip installed the toolkit; None if it came from a package index.

    pip writes the origin into the file direct_url.json of the installed package (PEP 610).
    """
    try:
        direct_url = json.loads(toolkit.read_text("direct_url.json") or "{}")
        address = urlsplit(direct_url.get("url", ""))
    except (ValueError, AttributeError):  # the file is no JSON object, so another tool wrote it
        return None
    if address.scheme != "file":
        return None
    return Path(url2pathname(unquote(address.path)))
