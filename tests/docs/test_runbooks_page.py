"""The runbooks: each alarm has a section with a query, and the queries read fields that lines have."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from typing import TYPE_CHECKING

import pytest

from mcp_functions import settings
from mcp_functions.observability.lines import own_fields
from mcp_functions_harness import command, template
from mcp_functions_harness.auth import set_auth
from tests.docs.pages import ROOT, Page
from tests.docs.test_observability_page import ALL

if TYPE_CHECKING:
    from pathlib import Path

PAGE = Page.named("runbooks.md")
TEMPLATE = template.read(ROOT / "template.yaml")
QUERIES = re.findall(r"^ *```text\n(.*?)```$", PAGE.text, re.MULTILINE | re.DOTALL)
ACCESS = ("route",)
RUNTIME = {"level", "errorType", "errorMessage"}  # of a line of Lambda's runtime
PLATFORM = {"type", "record.status", "record.errorType"}  # of Lambda's own report
INSIGHTS_NAMES = {
    "filter", "stats", "sort", "display", "limit", "by", "as", "asc", "desc", "and", "or", "like", "count",
    "sum", "bin", "latest", "earliest", "count_distinct", "ispresent",
}  # fmt: skip


def section(heading: str) -> str:
    return PAGE.text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def alarms() -> dict[str, str]:
    """Return the heading of the runbook of each alarm."""
    matches = re.findall(r"^\| `(\w+)`[^|]* \| [^|]+ \| \[([^]]+)\]", section("The alarms"), re.MULTILINE)
    return dict(matches)


def test_every_alarm_of_the_template_has_a_runbook_with_a_query() -> None:
    kinds = {"AWS::CloudWatch::Alarm", "AWS::Budgets::Budget"}
    assert alarms().keys() == {name for name, one in TEMPLATE["Resources"].items() if one["Type"] in kinds}
    assert [name for name, heading in alarms().items() if "```text\n" not in section(heading)] == []


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_names_fields_of_a_line(query: str) -> None:
    known = {*own_fields(ALL), "message"} | RUNTIME | PLATFORM
    if any(word in query for word in ACCESS):
        access_log = TEMPLATE["Resources"]["HttpApi"]["Properties"]["AccessLogSettings"]["Format"]
        known = set(json.loads(access_log))
    code = re.sub(r'"[^"]*"|/\^[^/]*/|\d+m\b', "", query)
    named = set(re.findall(r"(?<![@\w.])[A-Za-z]\w*(?:\.\w+)*", code))
    made = set(re.findall(r"\bas (\w+)", query))
    assert named - INSIGHTS_NAMES - made - known == set()


def test_the_values_in_the_queries_are_those_of_the_code() -> None:
    package = ROOT / "layers/shared/mcp_functions"
    code = "".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    for word in ("worker_gave_up", "function_error", "function_ended", "function_timed_out"):
        assert f"`{word}`" in PAGE.text
        assert f'"{word}"' in code


def test_every_stop_of_the_page_is_a_parameter_of_the_template() -> None:
    stops = re.findall(r"`(\w+)=[^`]*`", section("Stop"))
    assert {"RequestsPerSecond", "RequestBurst", "StoppedFunctions", "StoppedCallers", "Generation"} <= set(stops)
    with_sign_in = template.parse(set_auth((ROOT / "template.yaml").read_text(encoding="utf-8"), "oauth"))
    assert set(stops) <= with_sign_in["Parameters"].keys()
    config = (ROOT / "samconfig.toml").read_text(encoding="utf-8")
    overrides = re.findall(r"^parameter_overrides = (.*)$", config, re.MULTILINE)
    assert len(overrides) == 3
    assert all('"Generation=1"' in line for line in overrides)


def test_the_set_commands_of_the_page_write_parameters_of_the_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("samconfig.toml", "template.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "functions/book_flight").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"mcp-functions (set prod [^`\n]+) --now", PAGE.text + Page.named("security.md").text)
    assert [command.run(words.split()) for words in commands] == [0] * 5
    written = tomllib.loads((tmp_path / "samconfig.toml").read_text(encoding="utf-8"))["prod"]["global"]
    items = dict(item.split("=", 1) for item in written["parameters"]["parameter_overrides"])
    stops = {"RequestsPerSecond", "RequestBurst", "StoppedFunctions", "StoppedCallers"}
    ended = {name: str(TEMPLATE["Parameters"][name]["Default"]) for name in stops}
    assert {name: items[name].strip('"') for name in stops} == ended
    assert (items["Generation"], items["LogCallers"]) == ("2", "on")


def test_the_template_and_the_function_accept_the_stopped_caller_of_the_page() -> None:
    (name,) = set(re.findall(r"\b\d{4}-\d\d\.[\w-]+", PAGE.text))
    assert re.fullmatch(TEMPLATE["Parameters"]["StoppedCallers"]["AllowedPattern"], name)
    environ = {"MCP_STACK": "shop", "MCP_LOG_CALLERS": "arn", "MCP_STOPPED_CALLERS": name}
    assert settings.Settings(environ).stopped_callers == {name}
