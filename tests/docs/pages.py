"""A page of docs/: its code runs, and each of its claims names the tests that prove it.

A claim is a paragraph, an item of a list, or a row of a table. It ends with `<!-- proved by test_a test_b -->`; only
headings, and sentences that lead to code with a colon, need no proof.
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
PROOF = re.compile(r"<!-- proved by\s+([\w\s]+?)\s*-->")
NOT_RUN = "<!-- not run here -->"  # on a claim that nobody could prove on this machine
LINK = re.compile(r"\]\((?!https?:)([^)]+)\)")
NEEDS_NO_PROOF = re.compile(
    r"#|\|.*\n\|[-|]+\|$|- \[[^]]*\]\(#[^)]*\)$"
)  # a heading, a table's head, a line of the contents


@dataclass(frozen=True)
class Page:
    """One page of docs/."""

    path: Path
    text: str

    @classmethod
    def named(cls, name: str) -> Page:
        path = ROOT / "docs" / name
        return cls(path, path.read_text(encoding="utf-8"))

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
    def proofs(self) -> set[str]:
        """The tests that its claims name."""
        return {name for proof in PROOF.findall(self.text) for name in proof.split()}

    @property
    def unproven(self) -> list[str]:
        """Its claims that name no test."""
        return [claim for claim in self._claims() if not PROOF.search(claim)]

    def _claims(self) -> Iterator[str]:
        for passage in re.split(r"\n\s*\n", FENCED.sub("\n\n", self.text)):
            for part in re.split(r"\n(?=- |\| )", passage.strip()):
                if part and not NEEDS_NO_PROOF.match(part) and not part.endswith(":"):
                    yield part

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
