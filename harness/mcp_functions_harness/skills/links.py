"""The links in a Markdown file of a skill: each leads to a file of the skill, to another skill, or into the web."""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
INLINE = re.compile(r"\]\(\s*(?:<([^<>\n]*)>|([^()\s<>]*(?:\([^()\s]*\)[^()\s]*)*))(?:\s+[\"'(][^\n]*?)?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]\n]+\]:\s*(?:<([^<>\n]*)>|(\S+))")
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


class Link(NamedTuple):
    """A link."""

    line: int  # from 1
    target: str  # as it is written

    @property
    def scheme(self) -> str:
        """The scheme of a URI in lower case; "" for a path."""
        found = SCHEME.match(self.target)
        return found[1].lower() if found else ""

    @property
    def path(self) -> str:
        """The path, without the part of the page (#…) and without escapes (%20)."""
        return unquote(self.target.partition("#")[0].partition("?")[0])


def find(markdown: str) -> Iterator[Link]:
    """Yield the links of a Markdown file, without those in code."""
    fence = ""
    for number, line in enumerate(markdown.splitlines(), start=1):
        found = FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not line.strip(" \t`~"):
            fence = ""
        elif not fence:
            text = CODE.sub("", line)
            for match in [*INLINE.finditer(text), *DEFINITION.finditer(text)]:
                yield Link(number, match[1] if match[1] is not None else match[2])


def resolve(path: str, folder: str) -> str | None:
    """Return the path that a relative link leads to, from the root of the skill; None if outside.

    The path is as it is written, "../scripts/run.py". The folder of its file is "references", or "" for the root.
    """
    if path.startswith(("/", "\\", "~")) or "\\" in path or "\0" in path:
        return None
    parts = folder.split("/") if folder else []
    for part in path.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts)
