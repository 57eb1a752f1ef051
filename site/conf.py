"""The site: the pages of the repository as they are, and the API reference. `make site` builds it, strictly.

The repository is the source folder, so the links between pages, samples and recipes are those that GitHub follows.
"""

from __future__ import annotations

import inspect
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import mcp_functions
import mcp_functions_harness
from mcp_functions import adopt, annotated, content, hooks, low_level
from mcp_functions_harness import testing
from mcp_functions_harness.manual.contents import CONTENTS, PAGES

if TYPE_CHECKING:
    from sphinx.application import Sphinx

START = PAGES["start"].path.removesuffix(".md")
API = "site/api"
# the modules whose names authors import
PUBLIC = (mcp_functions, content, annotated, low_level, hooks, testing, adopt, mcp_functions_harness)

project = "mcp-functions"
copyright = "the mcp-functions authors"  # noqa: A001 - Sphinx's name
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = START
include_patterns = [
    *(page.path for page in PAGES.values()),
    f"{API}.md",
    "docs/*.md",
]  # of docs/ also what CONTENTS lacks
html_theme = "furo"
html_title = "mcp-functions"
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 4  # the addresses of headings, as GitHub makes them
default_role = "code"  # what docstrings have between two backticks
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_use_rtype = False
napoleon_use_ivar = True


def add_contents(_app: Sphinx, name: str, source: list[str]) -> None:
    """Give the first page the navigation, which its reader on GitHub does not need."""
    if name == START:
        for group, names in CONTENTS.items():
            pages = [PAGES[name].path.removesuffix(".md") for name in names if name != "start"]
            listed = "\n".join(f"/{page}" for page in [*pages, *([API] if group == "Begin" else [])])
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {group}\n\n{listed}\n```\n"


def add_names(_app: Sphinx, name: str, source: list[str]) -> None:
    """Write a directive for each public name: Sphinx would miss those that a package imports at their first use."""
    if name == API:
        for module in PUBLIC:
            directives = "\n".join(directive(module.__name__, public) for public in sorted(module.__all__))
            source[0] += f"\n\n## {module.__name__}\n\n```{{eval-rst}}\n{directives}```\n"


def directive(module: str, name: str) -> str:
    """Return the directive that documents a name."""
    value = getattr(sys.modules[module], name)
    if inspect.isclass(value):
        return f".. autoclass:: {module}.{name}\n   :members:\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {module}.{name}\n"
    return f".. py:data:: {module}.{name}\n   :value: {value!r}\n"


def show_code(_app: Sphinx, _what: str, _name: str, _of: object, _options: object, lines: list[str]) -> None:
    """Show the indented lines of a docstring's text as the code that they are; drop what Python writes of its own."""
    if lines[0].startswith("Alias for field number"):  # of a named tuple
        lines.clear()
    at = 1
    while at < len(lines) and not lines[at].endswith(":"):  # `Args:` and what follows it is for napoleon
        if lines[at].startswith("    ") and not lines[at - 1]:
            lines[at:at] = [".. code-block:: python", ""]
            while at < len(lines) and (not lines[at] or lines[at].startswith((" ", ".."))):
                at += 1
        at += 1


def copy_start(app: Sphinx, error: Exception | None) -> None:
    """Let the site's own address show the first page."""
    if error is None:
        shutil.copyfile(Path(app.outdir) / f"{START}.html", Path(app.outdir) / "index.html")


def setup(app: Sphinx) -> None:
    """Connect them."""
    app.connect("source-read", add_contents)
    app.connect("source-read", add_names)
    app.connect("autodoc-process-docstring", show_code, priority=400)  # before napoleon
    app.connect("build-finished", copy_start)
