"""A page of the repository: the code in it, its links, and its text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)]+)\)")


@dataclass(frozen=True)
class Page:
    """One page."""

    path: Path
    text: str

    @classmethod
    def named(cls, name: str) -> Page:
        return cls.at(ROOT / "docs" / name)

    @classmethod
    def at(cls, path: Path) -> Page:
        return cls(path, path.read_text(encoding="utf-8"))

    def run(self, kind: str = "python") -> dict[str, Any]:
        """Run the blocks of one kind, in their order, as one module; return its names."""
        names: dict[str, Any] = {"__name__": self.path.stem}
        for block in self._blocks(kind):
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
    def anchors(self) -> set[str]:
        """The addresses of its headings, as GitHub makes them."""
        titles = re.findall(r"^#+ (.*)$", FENCED.sub("", self.text), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

    @property
    def dead_links(self) -> list[str]:
        """Its links that lead to no file of the repository, or to no heading of a page."""
        return [link for link in LINK.findall(FENCED.sub("", self.text)) if not self._leads_somewhere(link)]

    def _leads_somewhere(self, link: str) -> bool:
        file, _hash, heading = link.partition("#")
        target = self.path.parent / file if file else self.path
        return target.exists() and (not heading or heading in Page.at(target).anchors)
