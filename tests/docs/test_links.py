"""Every link of every page leads to a file, and to a heading of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT, Page

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = (".", "docs", "tests", "layers/shared/mcp_functions/oauth", "layers/shared/mcp_functions/seal")
PAGES = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_to_a_heading_of_it(path: Path) -> None:
    assert Page.at(path).dead_links == []
