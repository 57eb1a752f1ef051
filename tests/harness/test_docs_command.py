"""`mcp-functions docs`: the manual at a terminal and in a pipe; each link says how its target is shown."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_functions_harness.command import run as main
from mcp_functions_harness.manual import contents, links

ROOT = Path(__file__).parents[2]
REFERENCE = re.compile(r"`mcp-functions docs ([^`]+)`")


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["docs", *words]) == 0
    return capsys.readouterr().out


def test_every_page_of_the_repository_is_listed_with_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    listed = shown(capsys)
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    assert {str(file.relative_to(ROOT)) for file in files} <= {page.path for page in contents.PAGES.values()}
    assert [page.name for page in contents.PAGES.values() if f"  {page.name} " not in listed] == []
    assert re.search(r"security +Security\n", listed)


@pytest.mark.parametrize("name", contents.PAGES)
def test_each_link_of_a_page_is_a_command_that_works_or_names_a_file(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, name)
    for reference in REFERENCE.findall(text):
        assert shown(capsys, reference)
    for path in re.findall(r"`([^`]+)` in the repository", text):
        assert (ROOT / path).exists(), path
    without_code = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"\]\((?!https?:)[^)]*\)", without_code) == []


def test_a_section_ends_where_the_next_one_of_its_rank_begins(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "compatibility#states-in-flight")
    assert text.startswith("## States in flight\n")
    assert "## Upgrade a project" not in text
    assert shown(capsys, "compatibility").startswith("# Compatibility\n")


def test_a_comment_in_code_begins_no_section(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Page\n\n```sh\n# a comment\n```\n\n## `Part`\n", encoding="utf-8")
    monkeypatch.setattr(contents, "ROOT", tmp_path)
    assert [section.anchor for section in contents.Page("page", "page.md").sections] == ["page", "part"]


def test_a_sample_and_a_file_that_is_only_in_the_repository(capsys: pytest.CaptureFixture[str]) -> None:
    assert "def add(a: int, b: int) -> int:" in shown(capsys, "functions/add/app.py")
    page = contents.find("docs/tasks.md")
    assert links.spelled_out("[ours](../tests/README.md), `[no](link)`, [web](https://x.y)", page) == (
        "ours (`tests/README.md` in the repository), `[no](link)`, [web](https://x.y)"
    )


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("securty", "there is no page 'securty'. Did you mean 'security'?"),
        ("security#sign-inn", "the page security has no section 'sign-inn'. Did you mean 'sign-in'?"),
        ("../../etc/passwd", "there is no page '../../etc/passwd'."),
        ("docs/../pyproject.toml", "there is no page"),
        ("docs/page.png", "there is no page"),
    ],
)
def test_a_wrong_page_or_section_is_one_line(wanted: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", wanted]) == 2
    assert why in capsys.readouterr().err


def test_a_terminal_gets_the_page_rendered_through_its_pager() -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "mcp_functions_harness", "docs", "compatibility#the-template"]
    variables = {**os.environ, "PAGER": "cat", "TERM": "xterm", "COLUMNS": "80"}
    subprocess.run(words, stdin=theirs, stdout=theirs, env=variables, check=True, timeout=60)  # noqa: S603 - our own words
    os.close(theirs)
    text = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "\x1b[" in text
    assert "## The template" not in text
    assert "The template" in text
