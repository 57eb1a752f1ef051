"""`mcp-functions catalog` writes a file with the handlers of every function; it has the same bytes every time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness import catalog
from mcp_functions_harness.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FRONT = "def handler(event, context): pass\n"
ADD = '''
from mcp_functions import serve, tool

@tool
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b

handler = serve(add)
'''
MORE = '''
from mcp_functions import prompt, resource, serve, tool

@tool
def about() -> str:
    """Say what this is."""
    return "né"

@prompt
def plan(day: str) -> str:
    """Plan a day."""
    return day

@resource("notes://all")
def notes() -> str:
    """Read all notes."""
    return ""

@resource("notes://{number}")
def note(number: int) -> str:
    """Read one note."""
    return str(number)

handler = serve(about, plan, notes, note)
'''


def test_every_list_names_its_entries_and_their_folders(project: Callable[[dict[str, str]], Path]) -> None:
    made = catalog.generate(project({"mcp/app.py": "not even Python", "sums/app.py": ADD, "more/app.py": MORE}))
    assert [entry["name"] for entry in made["tools"]] == ["about", "add"]
    assert made["tools"][1]["inputSchema"]["required"] == ["a", "b"]
    assert [entry["uri"] for entry in made["resources"]] == ["notes://all"]
    assert [entry["uriTemplate"] for entry in made["resourceTemplates"]] == ["notes://{number}"]
    assert made["functions"] == {
        "tools": {"about": "more", "add": "sums"},
        "prompts": {"plan": "more"},
        "resources": {"notes://all": "more"},
        "resourceTemplates": {"notes://{number}": "more"},
    }
    assert made.keys() >= {"tools", "prompts", "resources", "resourceTemplates", "functions"}


def test_the_catalog_file_is_the_same_every_time_and_ends_with_a_line_break(
    project: Callable[[dict[str, str]], Path],
) -> None:
    directory = project({"mcp/app.py": FRONT, "more/app.py": MORE})
    file = catalog.write(directory, catalog.generate(directory))
    once = file.read_text(encoding="utf-8")
    catalog.write(directory, catalog.generate(directory))
    assert file == directory / "mcp" / "catalog.json"
    assert file.read_text(encoding="utf-8") == once
    assert once == json.dumps(json.loads(once), indent=2, ensure_ascii=False) + "\n"


def test_two_functions_with_one_name_are_refused(project: Callable[[dict[str, str]], Path]) -> None:
    with pytest.raises(Problem, match="two tools named 'add', in one and in two"):
        catalog.generate(project({"one/app.py": ADD, "two/app.py": ADD}))


def test_one_function_with_one_name_twice_is_refused(project: Callable[[dict[str, str]], Path]) -> None:
    with pytest.raises(Problem, match="add"):
        catalog.generate(project({"one/app.py": ADD.replace("serve(add)", "serve(add, add)")}))


def test_a_project_without_a_front_door_has_no_path_for_a_catalog(project: Callable[[dict[str, str]], Path]) -> None:
    with pytest.raises(Problem, match=r"the catalog belongs beside the front door's app\.py"):
        catalog.write(project({"sums/app.py": ADD}), catalog.MISSING)


def test_the_differences_of_two_catalogs_are_listed(project: Callable[[dict[str, str]], Path]) -> None:
    old = catalog.generate(project({"sums/app.py": ADD}))
    new = catalog.generate(project({"sums/app.py": ADD.replace("whole", "integer"), "more/app.py": MORE}))
    assert catalog.differences(old, old) == []
    assert catalog.differences(old, new) == [
        "+ tools about",
        "~ tools add",
        "+ prompts plan",
        "+ resources notes://all",
        "+ resourceTemplates notes://{number}",
    ]
    assert catalog.differences(new, old)[:2] == ["- tools about", "~ tools add"]
    moved: Any = {**old, "functions": {**old["functions"], "tools": {"add": "elsewhere"}}}
    assert catalog.differences(old, moved) == ["~ tools add"]


@pytest.mark.parametrize("there", [None, "", "[]", '{"tools": [1], "functions": []}', "\x00"])
def test_an_invalid_catalog_lacks_every_handler(project: Callable[[dict[str, str]], Path], there: str | None) -> None:
    directory = project({"mcp/app.py": FRONT, "sums/app.py": ADD} | ({"mcp/catalog.json": there} if there else {}))
    assert catalog.differences(catalog.read(directory), catalog.generate(directory))[0] == "+ tools add"


def test_a_changed_capability_is_a_difference_of_catalogs() -> None:
    without: Any = {"logging": False}
    assert catalog.differences(without, without | {"logging": True}) == ["~ logging"]
    assert catalog.differences(catalog.MISSING, without) == ["~ logging"]
    assert catalog.differences(without, catalog.MISSING) == ["~ logging"]
