"""A page of docs/: the code in it, its links, and the claims that it makes.

A claim is a paragraph, an item of a list, or a row of a table. tests/docs/claims.toml names the tests that prove it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)]+)\)")
HEADING = re.compile(r"#+ (.*)")
NO_CLAIM = re.compile(r"#|\|.*\n\|[-|]+\|$|- \[[^]]*\]\(#[^)]*\)$")  # heading, head of a table, line of the contents


@dataclass(frozen=True)
class Claim:
    """One claim of a page: its text without marks of Markdown, and the heading above it."""

    section: str
    text: str

    @property
    def is_lead_in(self) -> bool:
        """Whether it only leads to the code or the list below it. It may have a key and needs none."""
        return self.text.endswith(":")


@dataclass(frozen=True)
class Page:
    """One page of docs/."""

    path: Path
    text: str

    @classmethod
    def named(cls, name: str) -> Page:
        return cls.at(f"docs/{name}")

    @classmethod
    def at(cls, path: str) -> Page:
        return cls(ROOT / path, (ROOT / path).read_text(encoding="utf-8"))

    def run(self, kind: str = "python", *, only: int | None = None) -> dict[str, Any]:
        """Run the blocks of one kind, in their order, as one module (or only one of them); return its names."""
        names: dict[str, Any] = {"__name__": self.path.stem}
        for number, block in enumerate(self._blocks(kind)):
            if only in (None, number):
                exec(compile(block, self.path, "exec", dont_inherit=True), names)  # noqa: S102 - our own page
        return names

    def code(self, kind: str) -> str:
        """Write the blocks of one kind as one file."""
        return "\n".join(self._blocks(kind))

    def _blocks(self, kind: str) -> Iterator[str]:
        for fenced in FENCED.finditer(self.text):
            if fenced[1] == kind:  # behind as many empty lines as stand above it: tracebacks lead into the page
                yield "\n" * (self.text.count("\n", 0, fenced.start()) + 1) + fenced[2]

    @property
    def claims(self) -> Iterator[Claim]:
        """Its claims, in their order."""
        section = ""
        for passage in re.split(r"\n\s*\n", FENCED.sub("\n\n", self.text)):
            if heading := HEADING.match(passage.strip()):
                section = plain(heading[1])
            for part in re.split(r"\n(?=- |\| |\d+\. )", passage.strip()):
                if part and not NO_CLAIM.match(part):
                    yield Claim(section, plain(part))

    @property
    def dead_links(self) -> list[str]:
        """Links that lead to no file, or to no heading of this page."""
        headings = {_anchor(line) for line in re.findall(r"^#+ (.*)$", self.text, re.MULTILINE)}
        return [
            link
            for link in LINK.findall(FENCED.sub("", self.text))
            if (
                link[1:] not in headings if link[0] == "#" else not (self.path.parent / link.partition("#")[0]).exists()
            )
        ]


def plain(markdown: str) -> str:
    """Return a text on one line, without backticks, asterisks, addresses of links and the mark of an item or a row."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown)
    text = re.sub(r"^> ?", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(- |\d+\. |\| )|\s*\|$", "", text)
    return " ".join(text.replace("`", "").replace("**", "").split())


def named_tests(pattern: str, folder: Path = Path(__file__).parent) -> set[str]:
    """Name the tests in a folder's files, the deeper ones too, that match a pattern."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in folder.rglob(pattern)]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    defined = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, functions)}
    return {name for name in defined if name.startswith("test_")}


@cache
def every_test() -> set[str]:
    """Name every test of the project."""
    return named_tests("test_*.py", ROOT / "tests")


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
