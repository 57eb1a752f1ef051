"""The pages of the manual, in the order of `mcp-functions docs` and of the site; and the sections of a page."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

import mcp_functions
from mcp_functions_harness.problems import Problem

# Group -> the names of its pages. A page is a file of docs/, if it has no path in `PATHS`.
CONTENTS: dict[str, tuple[str, ...]] = {
    "Begin": ("start", "this-or", "writing-a-conversation", "own-resources"),
    "Bring what you have": (
        "bring-your-server", "porting-a-server", "coming-from-await-elicit", "coming-from-a-session-store",
    ),
    "Ask and work": ("asking-anywhere", "may-this-happen-twice", "tasks", "skills"),
    "Deploy and operate": (
        "identity", "security", "infrastructure-code", "recipes", "observability", "settings", "runbooks", "costs",
        "deploy-locally", "sam-local",
    ),
    "Clients and versions": ("compatibility", "legacy", "dialects", "changelog", "support"),
    "Measured": ("performance",),
    "Inside": ("contributing", "envelope", "sign-in"),
}  # fmt: skip
PATHS = {
    "start": "README.md",
    "changelog": "CHANGELOG.md",
    "support": "SECURITY.md",
    "contributing": "CONTRIBUTING.md",
    "envelope": "layers/shared/mcp_functions/seal/envelope.md",
    "sign-in": "layers/shared/mcp_functions/oauth/sign-in.md",
}
TOOLKIT = "layers/shared/"  # a wheel has its files beside this package
HERE = Path(__file__).parent / "pages"  # in a wheel, the files to which its pages lead
ROOT = HERE if HERE.is_dir() else Path(__file__).parents[3]  # in a clone the repository itself
FENCED = re.compile(r"^(```+)[^\n]*\n.*?^\1$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Section:
    """A part of a page: from its heading to the next one that is not below it."""

    anchor: str  # the heading's address, as GitHub makes it
    title: str
    text: str


@dataclass(frozen=True)
class Page:
    """A page, or another file that a page leads to."""

    name: str  # as `mcp-functions docs` has it
    path: str  # in the repository

    @property
    def text(self) -> str:
        """Its Markdown, or the file as it is."""
        return located(self.path).read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        """Its first heading."""
        return self.sections[0].title

    @property
    def sections(self) -> list[Section]:
        """Its sections, in their order; the first is the whole page."""
        # Spaces in place of code, so that each heading keeps its place.
        without_code = FENCED.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), self.text)
        headings = list(re.finditer(r"^(#+) (.*)$", without_code, re.MULTILINE))
        sections = []
        for number, heading in enumerate(headings):
            following = (other.start() for other in headings[number + 1 :] if len(other[1]) <= len(heading[1]))
            text = self.text[heading.start() : next(following, None)]
            sections.append(Section(anchor(heading[2]), heading[2].replace("`", ""), text))
        return sections

    def section(self, wanted: str) -> Section:
        """Return a section by its anchor.

        Raises:
            Problem: the page has no such section.
        """
        sections = {section.anchor: section for section in self.sections}
        if wanted not in sections:
            raise Problem(f"the page {self.name} has no section {wanted!r}.{_nearest(wanted, sections)}")
        return sections[wanted]


PAGES = {name: Page(name, PATHS.get(name, f"docs/{name}.md")) for names in CONTENTS.values() for name in names}


def anchor(heading: str) -> str:
    """Return the address of a heading within its page, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def located(path: str) -> Path:
    """Return where a file of the repository is here. It does not exist if the wheel leaves it out."""
    if path.startswith(TOOLKIT):
        return Path(mcp_functions.__file__).parents[1] / path.removeprefix(TOOLKIT)
    return ROOT / path


def find(wanted: str) -> Page:
    """Return a page by its name, or by its path in the repository: "security", or "docs/security.md".

    Raises:
        Problem: there is no such page.
    """
    by_path = {page.path: page for page in PAGES.values()}
    page = PAGES.get(wanted.lower()) or by_path.get(wanted)
    if page is None and _is_carried(wanted):
        page = Page(wanted, wanted)
    if page is None:
        raise Problem(f"there is no page {wanted!r}.{_nearest(wanted.lower(), PAGES)} mcp-functions docs lists them")
    return page


def _is_carried(path: str) -> bool:
    """Whether a path is that of a text in the folders of the repository that a wheel carries."""
    file = located(path).resolve()
    folders = [located(folder).resolve() for folder in ("docs", "functions")]
    return file.is_file() and file.suffix != ".png" and any(folder in file.parents for folder in folders)


def _nearest(wanted: str, known: dict[str, Page] | dict[str, Section]) -> str:
    near = difflib.get_close_matches(wanted, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
