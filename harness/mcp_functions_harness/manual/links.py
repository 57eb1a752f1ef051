"""Writes the links of a page as words, because a user cannot click on them in a terminal.

    [Security](security.md#sign-in)        Security (`mcp-functions docs security#sign-in`)
    [keyring.py](../layers/…/keyring.py)   keyring.py (`layers/…/keyring.py` in the repository)

A link into the web stays as it is.
"""

from __future__ import annotations

import posixpath
import re

from mcp_functions_harness.manual.contents import PAGES, Page, find
from mcp_functions_harness.problems import Problem

COMMAND = "mcp-functions docs"
LINK = re.compile(
    r"(?P<code>^(?P<fence>```+)[^\n]*\n.*?^(?P=fence)$|`[^`\n]+`(?!\]))"  # stays as it is
    r"|(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?!https?:)(?P<target>[^)]+)\)",
    re.MULTILINE | re.DOTALL,
)


def spelled_out(text: str, page: Page) -> str:
    """Replace the links of a page by words: the command that shows their target, or the target's place."""

    def words(link: re.Match[str]) -> str:
        if link["code"]:
            return link[0]
        file, _hash, section = link["target"].partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), file)) if file else page.path
        if link["picture"]:
            return f"(a picture, `{path}` in the repository: {link['words']})"
        return f"{link['words']} (`{_place(path, section)})"

    return LINK.sub(words, text)


def _place(path: str, section: str) -> str:
    """Return the command that shows a file, or its place, up to the backtick that ends it."""
    names = [page.name for page in PAGES.values() if page.path == path]
    if names:
        return f"{COMMAND} {names[0]}{'#' * bool(section)}{section}`"
    try:
        return f"{COMMAND} {find(path).name}`"
    except Problem:  # the wheel leaves it out
        return f"{path}` in the repository"
