"""`mcp-functions set ENVIRONMENT NAME=VALUE` changes a parameter in samconfig.toml, and with --now in the stack."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from mcp_functions_harness import command

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
CALLER = "2026-11.fbIZn1rBHzMDjVTr"
GUIDED = """
[prod.deploy.parameters]
stack_name = "guided"
parameter_overrides = "Architecture=\\"arm64\\" Generation=\\"1\\" StoppedFunctions=\\"\\""
"""
SEVERAL_LINES = """
[prod.deploy.parameters]
parameter_overrides = [
  "Architecture=arm64", # cheaper
  'Generation=1',
]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a project with the files that the command reads, and go there."""
    shutil.copy(ROOT / "samconfig.toml", tmp_path)
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    parameters = text[text.index("\nParameters:") : text.index("\nRules:")]
    parameters += "\n  Sentence: {Type: String}\n"
    (tmp_path / "template.yaml").write_text(f"Resources: {{}}{parameters}", encoding="utf-8")
    for folder in ("add", "mcp", "ticket"):
        (tmp_path / "functions" / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "samconfig.toml"


def overrides(path: Path, table: str = "global", environment: str = "prod") -> Any:  # noqa: ANN401 - a text or a list
    parameters = tomllib.loads(path.read_text(encoding="utf-8"))[environment][table]["parameters"]
    return parameters["parameter_overrides"]


BEFORE = ["Architecture=x86_64", "Runtime=python3.13", "Stage=prod"]


def test_set_changes_a_generation_and_keeps_all_other_text(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = project.read_text(encoding="utf-8").splitlines()
    assert command.run(["set", "prod", "Generation=2"]) == 0
    assert overrides(project) == [*BEFORE, "Generation=2"]
    changed = project.read_text(encoding="utf-8").splitlines()
    assert [(old, new) for old, new in zip(lines, changed, strict=True) if old != new] == [
        (lines[26], lines[26].replace("Generation=1", "Generation=2"))
    ]
    assert capsys.readouterr().out.splitlines() == [
        "samconfig.toml has Generation=2 for prod, instead of 1",
        "Deploy it: sam build --config-env prod && sam deploy --config-env prod",
    ]


def test_a_value_of_several_words_and_an_array_in_another_parameter_are_kept(project: Path) -> None:
    text = project.read_text(encoding="utf-8")
    project.write_text(text.replace('"Stage=prod"', '\'Clients=["a", "b"]\''), encoding="utf-8")
    assert command.run(["set", "prod", "Sentence=two words"]) == 0
    assert overrides(project) == [*BEFORE[:2], 'Clients=["a", "b"]', "Generation=1", 'Sentence="two words"']


def test_a_comment_in_a_list_stays_where_it_is(project: Path) -> None:
    text = "[prod.global.parameters]\nparameter_overrides = [\n  # it's odd ]\n  'Generation=1',\n]\n"
    project.write_text(text, encoding="utf-8")
    assert command.run(["set", "prod", "Generation=2"]) == 0
    assert project.read_text(encoding="utf-8") == text.replace("'Generation=1'", '"Generation=2"')


def test_set_refuses_several_parameters_in_one_item(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "[prod.global.parameters]\nparameter_overrides = ['Stage=blue Generation=1', 'Runtime=python3.12']\n"
    project.write_text(text, encoding="utf-8")
    assert command.run(["set", "prod", "Generation=2"]) == 2
    assert project.read_text(encoding="utf-8") == text
    assert "give each an item of its own" in capsys.readouterr().err


def test_set_reports_that_a_stop_replaces_an_earlier_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [command.run(["set", "prod", f"StoppedFunctions={folder}"]) for folder in ("add", "ticket")] == [0, 0]
    assert "StoppedFunctions=ticket" in overrides(project)
    message = "samconfig.toml has StoppedFunctions=ticket for prod, instead of add"
    assert capsys.readouterr().out.splitlines()[2] == message


def test_set_writes_a_stop_and_removes_it(project: Path) -> None:
    stops = ["StoppedFunctions=add,ticket", f"StoppedCallers={CALLER}", "RequestsPerSecond=0"]
    assert command.run(["set", "prod", *stops]) == 0
    assert set(overrides(project)) == {*BEFORE, "Generation=1", *stops}
    ends = ["StoppedFunctions=", "StoppedCallers=", "RequestsPerSecond="]
    assert command.run(["set", "prod", *ends]) == 0
    defaults = {'StoppedFunctions=""', 'StoppedCallers=""', "RequestsPerSecond=50"}
    assert set(overrides(project)) == {*BEFORE, "Generation=1", *defaults}
    assert "Generation=1" in overrides(project, environment="dev")


@pytest.mark.parametrize(
    ("table", "written"),
    [
        (GUIDED, ["Architecture=arm64", "Generation=2", 'StoppedFunctions=""']),
        (SEVERAL_LINES, ["Architecture=arm64", "Generation=2"]),
    ],
)
def test_set_also_writes_to_the_table_of_a_single_sam_command(table: str, written: list[str], project: Path) -> None:
    project.write_text(project.read_text(encoding="utf-8") + table, encoding="utf-8")
    assert command.run(["set", "prod", "Generation=2"]) == 0
    assert overrides(project, "deploy") == written
    assert overrides(project) == [*BEFORE, "Generation=2"]
    assert ("# cheaper" in table) == ("# cheaper" in project.read_text(encoding="utf-8"))


def test_set_changes_an_environment_in_another_toml_notation(project: Path) -> None:
    text = 'prod = {global = {parameters = {parameter_overrides = ["Generation=1"]}}}\n'
    project.write_text(text, encoding="utf-8")
    assert command.run(["set", "prod", "Generation=2"]) == 0
    assert project.read_text(encoding="utf-8") == text.replace("Generation=1", "Generation=2")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["test", "Generation=2"], "samconfig.toml has no environment test"),
        (["prod", "StopedFunctions=add"], "template.yaml has no parameter StopedFunctions"),
        (["prod", "Generation"], "each change is NAME=VALUE, or NAME= for the default"),
        (["prod", "StoppedFunctions=add,tickets"], "there is no functions/tickets to stop"),
        (["prod", "StoppedCallers=alice"], "StoppedCallers must match "),
        (["prod", "RequestsPerSecond=few"], "RequestsPerSecond must be a number"),
        (["prod", "LogCallers=yes"], "LogCallers must be one of on, off"),
        (["prod", 'Stage=1"'], "Stage must have no quotes"),
        (["default", "Generation=1"], "Generation is 7: with 1, earlier states would be valid again"),
    ],
)
def test_set_reports_an_invalid_command_line_in_one_line_and_changes_nothing(
    words: list[str], why: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run(["set", "default", "Generation=7"]) == 0
    before = project.read_text(encoding="utf-8")
    capsys.readouterr()
    assert command.run(["set", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert why in err
    assert project.read_text(encoding="utf-8") == before


# ---- The stack too

TEMPLATE = {
    "Parameters": {
        "StoppedFunctions": {"Type": "String", "Default": ""},
        "Stage": {"Type": "String", "Default": "prod"},
        "LogDays": {"Type": "Number", "Default": "30"},
    },
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
}


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - boto3's clients have no type of their own
    """Deploy a stack, and return a function that reads its parameters."""
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        session: Any = boto3.Session()
        client = session.client("cloudformation")
        client.create_stack(
            StackName="mcp-functions-prod",
            TemplateBody=json.dumps(TEMPLATE),
            Parameters=[  # moto has no previous value of a default
                {"ParameterKey": "Stage", "ParameterValue": "blue"},
                {"ParameterKey": "LogDays", "ParameterValue": "7"},
            ],
        )

        def parameters() -> dict[str, str]:
            (described,) = client.describe_stacks(StackName="mcp-functions-prod")["Stacks"]
            return {one["ParameterKey"]: one["ParameterValue"] for one in described["Parameters"]}

        yield parameters


def test_set_now_changes_one_parameter_of_the_stack_without_a_build(
    project: Path, stack: Callable[[], dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run(["set", "prod", "StoppedFunctions=add,ticket", "--now"]) == 0
    assert stack() == {"StoppedFunctions": "add,ticket", "Stage": "blue", "LogDays": "7"}
    assert "StoppedFunctions=add,ticket" in overrides(project)
    out = capsys.readouterr().out.splitlines()
    assert out[1:] == ["CloudFormation changes the stack mcp-functions-prod", "Done"]


def test_the_stack_name_of_the_deploy_table_takes_precedence_over_the_global_one(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for_deploy = '[prod.deploy.parameters]\nstack_name = "blue"\n'
    project.write_text(for_deploy + project.read_text(encoding="utf-8"), encoding="utf-8")
    with mock_aws():
        assert command.run(["set", "prod", "Generation=2", "--now"]) == 2
    assert "CloudFormation changes the stack blue" in capsys.readouterr().out


@pytest.mark.usefixtures("stack")
def test_set_now_names_a_missing_stack_and_keeps_the_stop_in_the_file(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run(["set", "dev", "StoppedFunctions=add", "--now"]) == 2
    err = capsys.readouterr().err
    assert "the stack mcp-functions-dev is not changed, and the next deployment will change it: " in err
    assert "StoppedFunctions=add" in overrides(project, environment="dev")
