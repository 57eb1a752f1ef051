"""The README's code runs in a project that `init` writes, and its commands exist."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from mcp_functions_harness import Harness, banner, checks
from mcp_functions_harness.command import run as main
from mcp_functions_harness.testing import Conversation
from tests.docs import powertools
from tests.docs.pages import ROOT, Page
from tests.support import wire
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
SHOWS = """import os
from mcp_functions import serve, tool


@tool
def flight_status(flight: str) -> str:
    return os.environ["AIRLINE_SECRET"]


handler = serve(flight_status)
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
    for name, heading in (("flight_status", "Environment and secrets"), ("quote", "Shared code")):
        assert _run(root, "-m", "mcp_functions_harness", "new", "tool", name).returncode == 0
        (root / f"functions/{name}/app.py").write_text(section(heading).code("python"), encoding="utf-8")
    (root / "functions/quote/prices.py").write_text('PRICES = {"Lisbon": 420}\n', encoding="utf-8")
    template = root / "template.yaml"
    text = template.read_text(encoding="utf-8")
    block = section("Environment and secrets").code("yaml").strip()
    indented = "".join(f"      {line}\n" for line in block.splitlines())
    template.write_text(
        text.replace("CodeUri: functions/flight_status/\n", f"CodeUri: functions/flight_status/\n{indented}"),
        encoding="utf-8",
    )
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
    named = re.findall(r"layers/dependencies/[\w.]+/?", section("Packages").text)
    assert {"layers/dependencies/requirements.txt"} == set(named)
    assert all((project / name).exists() for name in named)
    tests, layer = ((project / folder / "Makefile").read_text("utf-8") for folder in (".", "layers/dependencies"))
    assert "REQUIREMENTS = layers/dependencies/toolkit.txt layers/dependencies/requirements.txt" in tests
    assert "$(REQUIREMENTS:%=--requirement %) --find-links layers/dependencies/wheels" in tests
    assert "--find-links ../../wheels" in layer
    assert "--requirement ../../requirements.txt" in layer


@pytest.mark.parametrize("mode", MODES)
def test_a_function_has_its_variables_of_the_template(
    mode: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(project, tmp_path / "copy")
    (tmp_path / "copy/functions/flight_status/app.py").write_text(SHOWS, encoding="utf-8")
    monkeypatch.delenv("AIRLINE_SECRET", raising=False)
    with Harness(tmp_path / "copy/functions", state_dir=tmp_path, runtime=is_runtime(mode)) as harness:
        said = call(harness, "flight_status", flight="MF 106")
    assert said.content == [TextContent(text="airline-token")]


def test_the_secret_that_the_variable_names_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = section("Environment and secrets").run()
    asked = powertools.secrets(monkeypatch, "airline-token", "s3cr3t")
    monkeypatch.setenv("AIRLINE_SECRET", "airline-token")
    texts = {Conversation(names["handler"]).call(flight="MF 106").text for _ in range(2)}
    assert texts == {"MF 106 is on time (asked with 6 characters of token)."}
    assert asked == ["airline-token"]


def test_a_module_beside_a_function_is_imported_by_its_name(readme_harness: Harness) -> None:
    assert call(readme_harness, "quote", city="Lisbon").content == [TextContent(text="420")]


def test_a_module_beside_a_function_is_found_by_the_projects_tests(project: Path) -> None:
    test = "from mcp_functions_harness.testing import Conversation\nfrom functions.quote.app import handler\n\n\n"
    test += "def test_a_price():\n    assert Conversation(handler).call(city='Lisbon').text == '420'\n"
    (project / "tests/functions/test_quote.py").write_text(test, encoding="utf-8")
    done = _run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/functions/test_quote.py")
    assert "1 passed" in done.stdout, done.stdout


def test_log_lines_of_the_author_and_of_the_toolkit_have_the_same_correlation_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # of one service there is one Logger, with the stream that an earlier test captured and pytest closed
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "readme")
    names, out = section("Logging").run(), io.StringIO()
    names["logger"].registered_handler.stream = out  # `setStream` flushes the old one, which an earlier test closed
    assert Conversation(names["handler"]).call(booking="number 1").text == "number 1 is cancelled."
    own, ours = (json.loads(line) for line in out.getvalue().splitlines())
    assert (own["message"], ours["outcome"]) == ("cancelled", "complete")
    assert own["correlation_id"] == ours["correlation_id"] != ""
    assert "number 1" not in json.dumps(ours)


def test_open_shows_the_content_of_a_state(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split(section("Looking into a state").code("sh"))
    assert words[0] == "mcp-functions"
    monkeypatch.chdir(tmp_path)
    sent = wire.message("tools/call", {"name": "book_flight", "arguments": {"city": "Lisbon"}})
    with Harness(project / "functions") as harness:
        request = urllib.request.Request(harness.url, json.dumps(sent).encode(), wire.headers(sent))  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - ours
            token = json.load(response)["result"]["requestState"]
    capsys.readouterr()
    assert main([*words[1:-1], "--functions", str(project / "functions"), token]) == 0
    assert "asked         seat" in capsys.readouterr().out


VARIES = re.compile(r"127\.0\.0\.1:\d+|\d+\.\d ms|[0-9a-f-]{36}|ks1\.\S+|\d+ characters|character \d+")


def test_the_readme_shows_the_output_of_the_demo() -> None:
    recording = section("The demo").code("text").strip()
    done = _run(ROOT, "-m", "mcp_functions_harness", "demo")
    assert VARIES.sub("*", done.stdout.strip()) == VARIES.sub("*", recording)


def test_the_commands_of_the_readme_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = section("The command").code("sh").strip().splitlines()
    words = [shlex.split(line, comments=True) for line in lines if line.startswith("mcp-functions ")]
    ran = {" ".join(one[1:3]): _run(project, "-m", "mcp_functions_harness", *one[1:]) for one in words}
    assert ran["call book_flight"].stdout == "Booked: Lisbon, window seat.\n"
    assert ran["block --write"].stdout == "template.yaml has what functions/book_flight needs\n"
    assert "layers" in ran["doctor"].stdout
    (completion,) = [line for line in lines if line.startswith("eval ")]
    assert completion.startswith('eval "$(_MCP_FUNCTIONS_COMPLETE=bash_source mcp-functions)"')
    monkeypatch.setenv("_MCP_FUNCTIONS_COMPLETE", "bash_source")
    assert (
        "complete -o nosort -F _mcp_functions_completion mcp-functions"
        in _run(project, "-m", "mcp_functions_harness").stdout
    )


def test_make_serve_prints_the_configuration_of_the_readme() -> None:
    lines = section("Client configuration").code("text").strip().splitlines()
    printed = banner.text(URL, {}).splitlines()
    assert lines
    assert [line for line in lines if f"  {line}" not in printed] == []


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
