"""The README's code runs in a project that `init` writes, and its commands exist."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from mcp_functions_harness import Harness, checks
from mcp_functions_harness.command import run as main
from tests.docs.pages import ROOT, Page
from tests.support.modes import MODES, is_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

README = Page.at(ROOT / "README.md")
OWN = (
    "A project of your own",
    "Next things",
)  # sections about a project that `init` writes; the rest is about the clone
SCAFFOLD = ROOT / "harness/mcp_functions_harness/scaffold/project"
URL = "http://127.0.0.1:8000/mcp"
QUOTE = """from prices import PRICES
from mcp_functions import serve, tool


@tool
def quote(city: str) -> int:
    return PRICES[city]


handler = serve(quote)
"""


def section(heading: str) -> Page:
    """Return what stands under a heading, up to the next one of its level or above."""
    level, text = re.findall(rf"^(#+) {heading}\n(.*)", README.text, re.MULTILINE | re.DOTALL)[0]
    return Page(README.path, re.split(rf"^#{{1,{len(level)}}} ", text, maxsplit=1, flags=re.MULTILINE)[0])


FRONT = Page(README.path, README.text.partition("\n## ")[0])
TOOL, TEST, CLIENT = re.findall(r"```python\n(.*?)```", FRONT.text, re.DOTALL)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a new project, and add the functions of the README as its reader would."""
    root = tmp_path_factory.mktemp("reader") / "my-server"
    assert main(["init", str(root)]) == 0
    (root / "functions/book_flight/app.py").write_text(TOOL, encoding="utf-8")
    assert _run(root, "-m", "mcp_functions_harness", "new", "tool", "quote").returncode == 0
    (root / "functions/quote/app.py").write_text(QUOTE, encoding="utf-8")
    (root / "functions/quote/prices.py").write_text('PRICES = {"Lisbon": 420}\n', encoding="utf-8")
    assert _run(root, "-m", "mcp_functions_harness", "catalog").returncode == 0
    return root


def _run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the project is, as its Makefile does."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "layers/shared")}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 - ours


@pytest.fixture(scope="module", params=MODES)
def readme_harness(
    request: pytest.FixtureRequest, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Harness]:
    state = tmp_path_factory.mktemp("state")
    with Harness(project / "functions", state_dir=state, runtime=is_runtime(request.param)) as harness:
        yield harness


def call(harness: Harness, name: str, **arguments: object) -> CallToolResult:
    """Call a tool as a client does."""

    async def called() -> CallToolResult:
        async with Client(harness.url) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(called())


def test_the_first_page_of_the_readme_has_75_lines_and_its_tool_20_lines() -> None:
    assert len(FRONT.text.splitlines()) <= 75
    assert len(TOOL.strip().splitlines()) <= 20


def test_the_tool_of_the_readme_passes_the_test_of_the_readme() -> None:
    names: dict[str, Any] = {}
    exec(compile(TOOL + TEST, "README.md", "exec", dont_inherit=True), names)  # noqa: S102 - our own README
    names["test_a_seat_is_chosen"]()


def test_the_client_of_the_readme_finishes_the_conversation(
    readme_harness: Harness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def type_aisle(question: str) -> str:
        asked.append(question)
        return "aisle"

    monkeypatch.setattr("builtins.input", type_aisle)
    exec(compile(CLIENT.replace(URL, readme_harness.url), "README.md", "exec", dont_inherit=True), {})  # noqa: S102 - our own README
    assert asked == ["Where would you like to sit on the way to Lisbon? "]
    assert "Booked: Lisbon, aisle seat." in capsys.readouterr().out


def test_the_project_of_the_readme_passes_its_checks(project: Path) -> None:
    assert checks.complaints(checks.read(project)) == []


def test_packages_and_wheels_are_installed_for_the_tests_and_for_the_layer(project: Path) -> None:
    named = re.findall(r"layers/dependencies/[\w.]+/?", Page.named("own-resources.md").text)
    assert {"layers/dependencies/requirements.txt"} == set(named)
    assert all((project / name).exists() for name in named)
    tests, layer = ((project / folder / "Makefile").read_text("utf-8") for folder in (".", "layers/dependencies"))
    assert "REQUIREMENTS = layers/dependencies/toolkit.txt layers/dependencies/requirements.txt" in tests
    assert "$(REQUIREMENTS:%=--requirement %) --find-links layers/dependencies/wheels" in tests
    assert "--find-links ../../wheels" in layer
    assert "--requirement ../../requirements.txt" in layer


def test_a_module_beside_a_function_is_imported_by_its_name(readme_harness: Harness) -> None:
    assert call(readme_harness, "quote", city="Lisbon").content == [TextContent(text="420")]


def test_a_module_beside_a_function_is_found_by_the_projects_tests(project: Path) -> None:
    test = "from mcp_functions_harness.testing import Conversation\nfrom functions.quote.app import handler\n\n\n"
    test += "def test_a_price():\n    assert Conversation(handler).call(city='Lisbon').text == '420'\n"
    (project / "tests/functions/test_quote.py").write_text(test, encoding="utf-8")
    done = _run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/functions/test_quote.py")
    assert "1 passed" in done.stdout, done.stdout


def test_the_commands_of_the_projects_readme_complete_in_a_shell(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (line,) = [each for each in (project / "README.md").read_text("utf-8").splitlines() if "eval " in each]
    assert line.startswith('`eval "$(_MCP_FUNCTIONS_COMPLETE=bash_source mcp-functions)"`')
    monkeypatch.setenv("_MCP_FUNCTIONS_COMPLETE", "bash_source")
    told = _run(project, "-m", "mcp_functions_harness").stdout
    assert "complete -o nosort -F _mcp_functions_completion mcp-functions" in told


def test_every_make_target_that_the_readme_names_exists() -> None:
    own = "".join(section(heading).text for heading in OWN)
    clone = README.text
    for heading in OWN:
        clone = clone.replace(section(heading).text, "")
    for text, file in ((clone, ROOT / "Makefile"), (own, SCAFFOLD / "Makefile.in")):
        named = re.findall(r"(?:^|`)make ([a-z-]+)((?: [a-z-]+\b)*)", text, re.MULTILINE)
        targets = {word for first, more in named for word in (first, *more.split())}
        assert targets
        assert targets <= set(re.findall(r"^([a-z-]+):", file.read_text(encoding="utf-8"), re.MULTILINE)), file


def test_the_map_names_every_page() -> None:
    named = set(re.findall(r"\]\((docs/[\w-]+\.md)\)", section("The documentation").text))
    assert named == {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}


# ---- CONTRIBUTING.md

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "layers/shared/mcp_functions"


def test_the_rooms_are_those_of_the_package_in_the_order_of_the_import_linter() -> None:
    listed = re.findall(r"^(\w+)(?:/|\.py) {2,}", CONTRIBUTING, re.MULTILINE)
    present = {path.stem for path in PACKAGE.iterdir() if path.suffix in {"", ".py"} and "__" not in path.name}
    assert sorted(listed) == sorted(present)
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    floors = [set(floor.split(" | ")) for floor in contract[0]["layers"]]
    where = {room: number for number, floor in enumerate(floors) for room in floor}
    assert [where[room] for room in listed] == sorted(where[room] for room in listed)


def test_every_make_target_of_contributing_md_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", CONTRIBUTING, re.MULTILINE))
    assert named <= targets


def test_the_test_that_contributing_md_runs_exists() -> None:
    for path, word in re.findall(r"pytest -q (\S+)(?: -k (\w+))?", CONTRIBUTING):
        assert word in (ROOT / path).read_text(encoding="utf-8")
