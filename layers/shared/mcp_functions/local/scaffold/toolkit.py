"""Which toolkit this is: its version, which a new project pins, and the wheel it was installed from, if it was one."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from mcp_functions.local.problems import Problem

NAME = "mcp-functions"


def installed() -> Distribution:
    """Find the toolkit among the installed packages.

    Raises:
        Problem: it is not installed: somebody only put it on the path.

    """
    try:
        return distribution(NAME)
    except PackageNotFoundError as error:
        missing = f"{NAME} is not installed, so its version is unknown: pip install its wheel first"
        raise Problem(missing) from error


def origin(toolkit: Distribution) -> Path | None:
    """Find the wheel or the folder that pip installed it from; None if that was an index (PEP 610)."""
    try:
        told = json.loads(toolkit.read_text("direct_url.json") or "{}")
        address = urlsplit(told.get("url", ""))
    except (ValueError, AttributeError):
        return None
    return Path(url2pathname(unquote(address.path))) if address.scheme == "file" else None
