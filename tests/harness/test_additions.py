"""`mcp-functions add NAME` writes into template.yaml what a first project does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_functions import settings
from mcp_functions_harness import checks, fragments, template
from mcp_functions_harness.auth import set_auth
from mcp_functions_harness.command import run as main
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.scaffold import additions, beginning
from mcp_functions_harness.scaffold.editing import new

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_functions.settings import AuthMode

MAX_LINES = 300  # that one reads in five minutes
for_each = pytest.mark.parametrize("name", additions.NAMES)


@pytest.fixture(scope="module")
def first_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the template of a new project."""
    directory = tmp_path_factory.mktemp("written") / "shop"
    beginning.init(directory)
    return (directory / template.FILE).read_text(encoding="utf-8")


@pytest.fixture
def project_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    beginning.init(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def resources(text: str) -> set[str]:
    return set(template.parse(text)["Resources"])


# ---- The first template


def test_the_first_template_is_read_in_five_minutes(first_text: str) -> None:
    assert len(first_text.splitlines()) <= MAX_LINES


def test_the_first_template_has_the_function_its_key_and_the_table_of_its_questions(first_text: str) -> None:
    assert resources(first_text) == {
        "HttpApi", "Mcp", "BookFlight", "MaySeal", "RequestStateKey", "DependenciesLayer", "FunctionLogs", "AccessLogs",
        "Table", "MayKeep",
    }  # fmt: skip


def test_no_variable_of_the_first_template_equals_its_default(first_text: str) -> None:
    variables = template.parse(first_text)["Globals"]["Function"]["Environment"]["Variables"]
    defaults = vars(settings.Settings({"MCP_STACK": "shop"}))
    attribute = {name: name.removeprefix("MCP_").lower() for name in variables if name.startswith("MCP_")}
    written = {name: value for name, value in variables.items() if isinstance(value, str)}
    equal = {name for name, value in written.items() if str(defaults.get(attribute.get(name, ""))) == value}
    of_sam_local = {"MCP_AUTH_MODE", *(name for name in variables if name.startswith("AWS_ENDPOINT_URL_"))}
    assert equal <= of_sam_local, "`sam local` sets only variables that the template lists"
    empty = {name for name, value in variables.items() if value == ""}
    assert empty <= of_sam_local


def test_every_function_of_a_first_project_logs_in_json_and_writes_no_traces(first_text: str) -> None:
    of_all = template.parse(first_text)["Globals"]["Function"]
    assert of_all["LoggingConfig"]["LogFormat"] == "JSON"
    assert "Tracing" not in of_all, "X-Ray costs more than the calls that it traces: its author turns it on"


# ---- add


@for_each
def test_an_addition_keeps_every_line_and_is_written_once(name: str, first_text: str) -> None:
    text = first_text.replace("      Timeout: 29\n", "      Timeout: 29 # seconds, I say\n")
    added = additions.with_addition(text, name)
    after = iter(added.splitlines())
    assert all(line in after for line in text.splitlines()), "in the same order"
    assert additions.with_addition(added, name) == added


@for_each
def test_a_project_with_an_addition_passes_its_checks(
    name: str, project_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (project_dir / template.FILE).read_text(encoding="utf-8")
    assert main(["add", name]) == 0
    output = capsys.readouterr().out
    assert checks.complaints(checks.read(project_dir)) == []
    after = (project_dir / template.FILE).read_text(encoding="utf-8")
    if name == "table":
        assert (after, output) == (before, "template.yaml has all of it\n")
        return
    for resource in resources(after) - resources(before):
        assert resource in output
    assert main(["add", name]) == 0
    assert capsys.readouterr().out == "template.yaml has all of it\n"


@pytest.mark.parametrize("mode", settings.AUTH_MODES)
def test_additions_and_modes_may_come_in_any_order(mode: AuthMode, first_text: str) -> None:
    first, then = first_text, set_auth(first_text, mode)
    for name in additions.NAMES:
        first, then = additions.with_addition(first, name), additions.with_addition(then, name)
    assert template.parse(set_auth(first, mode)) == template.parse(then)
    assert set_auth(set_auth(first, mode), "iam") == first


def test_what_an_author_changed_in_an_addition_stays(first_text: str) -> None:
    changed = additions.with_addition(first_text, "alarms").replace("    Default: 5\n", "    Default: 50 # ours\n")
    assert "Default: 50 # ours" in additions.with_addition(changed, "dashboard")
    without = changed.replace("  EndedFilter: #", "  OurFilter: #")
    assert "\n  EndedFilter: # " in additions.with_addition(without, "alarms")


@pytest.mark.parametrize("alarms_first", [True, False])
def test_every_worker_has_an_alarm_whichever_came_first(*, alarms_first: bool, project_dir: Path) -> None:
    if alarms_first:
        additions.add(project_dir, "alarms")
    new(project_dir, "task", "track_parcel")
    additions.add(project_dir, "alarms")
    text = (project_dir / template.FILE).read_text(encoding="utf-8")
    alarm = template.parse(text)["Resources"]["TrackParcelWorkerAlarm"]["Properties"]
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": "TrackParcelWorker"}}]
    assert "TrackParcelWorkerAlarm" not in fragments.remove(text, additions.worker_alarm("TrackParcel"))


@pytest.mark.parametrize(("kind", "needs"), [("task", True), ("single_use", True), ("asking", False), ("tool", False)])
def test_the_checks_say_when_a_function_needs_the_table(
    *, kind: str, needs: bool, project_dir: Path, first_text: str
) -> None:
    new(project_dir, kind, "track_parcel")
    path = project_dir / template.FILE
    text = path.read_text(encoding="utf-8")
    fragment = "Resources:\n" + "".join(f"  {name}:\n    Type: x\n" for name in ("Table", "MayKeep"))
    without = fragments.remove(text, fragment).replace("        MCP_TABLE: !Ref Table\n", "")
    path.write_text(without.replace("        - !Ref MayKeep\n", ""), encoding="utf-8")
    expected = "functions/track_parcel keeps something, and template.yaml has no Table: mcp-functions add table"
    complaints = checks.complaints(checks.read(project_dir))
    assert (expected in complaints) is needs
    additions.add(project_dir, "table")
    assert checks.complaints(checks.read(project_dir)) == []
    assert resources(path.read_text(encoding="utf-8")) >= resources(first_text)


def test_a_list_in_one_line_is_reported_and_nothing_is_written(project_dir: Path) -> None:
    path = project_dir / template.FILE
    text = path.read_text(encoding="utf-8")
    start, end = text.index("      Policies:\n        - !Ref MaySeal"), text.index("      Events:")
    one_line = f"{text[:start]}      Policies: !Ref MaySeal\n{text[end:]}"
    path.write_text(fragments.remove(one_line, "Resources:\n  MayKeep:\n    Type: x\n"), encoding="utf-8")
    before = path.read_text(encoding="utf-8")
    with pytest.raises(Problem, match=r"template\.yaml has Resources\.Mcp\.Properties\.Policies in one line"):
        additions.add(project_dir, "table")
    assert path.read_text(encoding="utf-8") == before


def test_an_unknown_addition_is_reported_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add", "alarm"]) == 2
    assert "'alarms'" in capsys.readouterr().err
