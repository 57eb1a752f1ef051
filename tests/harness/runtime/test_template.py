"""The runtime reads each function's block of template.yaml and resolves it as far as a local stack can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_functions_harness import Problem, environment, template
from mcp_functions_harness.lambdas.functions import SIGN_IN, find
from mcp_functions_harness.runtime.configuration import Configurations
from mcp_functions_harness.runtime.intrinsics import Resolver, Unknown, text

ROOT = Path(__file__).parents[3]
KEY = "arn:aws:kms:us-east-1:123456789012:key/7a0b1c2d"
OWN = environment.settings(port=8000, name="shop", key_arn=KEY)
TEMPLATE: dict[str, Any] = {
    "Parameters": {
        "Stage": {"Type": "String", "Default": "prod"},
        "Zones": {"Type": "CommaDelimitedList", "Default": "a,b"},
        "Needed": {"Type": "String"},
    },
    "Conditions": {
        "Prod": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]},
        "Both": {"Fn::And": [{"Condition": "Prod"}, {"Fn::Not": [{"Fn::Equals": ["a", "b"]}]}]},
        "None": {"Fn::Or": [{"Fn::Equals": ["a", "b"]}, {"Fn::Not": [{"Condition": "Prod"}]}]},
    },
    "Mappings": {"Sizes": {"prod": {"memory": 512}}},
    "Resources": {
        "Key": {"Type": "AWS::KMS::Key"},
        "Add": {
            "Type": "AWS::Serverless::Function",
            "Properties": {"FunctionName": {"Fn::Sub": "${AWS::StackName}_add"}},
        },
        "Table": {"Type": "AWS::DynamoDB::Table"},
        "Named": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "ours"}},
    },
}


def resolver() -> Resolver:
    return Resolver(template.parse(json.dumps(TEMPLATE)), key_arn=KEY)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("plain", "plain"),
        (7, 7),
        ({"Ref": "AWS::StackName"}, "local"),
        ({"Ref": "Stage"}, "prod"),
        ({"Ref": "Key"}, "7a0b1c2d"),
        ({"Ref": "Add"}, "local_add"),
        ({"Ref": "Table"}, "local-Table"),
        ({"Ref": "Named"}, "ours"),
        ({"Fn::GetAtt": "Key.Arn"}, KEY),
        ({"Fn::GetAtt": ["Key", "Arn"]}, KEY),
        ({"Fn::GetAtt": "Add.Arn"}, "arn:aws:lambda:us-east-1:123456789012:function:local_add"),
        ({"Fn::Sub": "${Stage}-${Add}-${!Literal}-${Key.Arn}"}, f"prod-local_add-${{Literal}}-{KEY}"),
        ({"Fn::Sub": ["${x}/${Stage}", {"x": {"Ref": "AWS::Region"}}]}, "us-east-1/prod"),
        ({"Fn::If": ["Prod", "yes", {"Ref": "Nothing"}]}, "yes"),
        ({"Fn::If": ["None", {"Ref": "Nothing"}, "no"]}, "no"),
        ({"Fn::If": ["Both", 1, 2]}, 1),
        ({"Fn::Not": [False, "a value too many"]}, True),
        ({"Fn::Equals": ["a", "a", "a value too many"]}, True),
        ({"Fn::Join": [",", ["a", {"Ref": "Stage"}]]}, "a,prod"),
        ({"Fn::Join": ["+", {"Ref": "Zones"}]}, "a+b"),
        ({"Fn::Select": ["1", {"Ref": "Zones"}]}, "b"),
        ({"Fn::Select": ["1", {"Fn::Split": ["-", "a-b"]}]}, "b"),
        ({"Fn::FindInMap": ["Sizes", {"Ref": "Stage"}, "memory"]}, 512),
        ([{"Ref": "Stage"}, {"Ref": "AWS::NoValue"}], ["prod"]),
        ({"a": {"Ref": "AWS::NoValue"}, "b": {"Ref": "Stage"}}, {"b": "prod"}),
    ],
)
def test_a_value_is_resolved_for_a_stack_named_local(written: Any, value: object) -> None:  # noqa: ANN401 - any JSON
    assert resolver().value(written) == value


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ({"Ref": "Nothing"}, "Nothing"),
        ({"Ref": "Needed"}, "Needed"),
        ({"Fn::GetAtt": "Table.StreamArn"}, "Table.StreamArn"),
        ({"Fn::ImportValue": "network"}, "Fn::ImportValue"),
        ({"Fn::FindInMap": ["Sizes", "dev", "memory"]}, "Sizes.dev.memory"),
        ({"Fn::If": ["Nowhere", 1, 2]}, "Nowhere"),
    ],
)
def test_a_value_that_only_a_deployment_has_is_unknown_by_name(written: Any, asked: str) -> None:  # noqa: ANN401 - any JSON
    with pytest.raises(Unknown, match=asked.replace(".", r"\.")):
        resolver().value(written)


@pytest.mark.parametrize(
    ("value", "written"), [(True, "true"), (3, "3"), (["a", "b"], "a,b"), ("x", "x"), (0.5, "0.5")]
)
def test_a_value_becomes_text_as_cloudformation_writes_it(value: object, written: str) -> None:
    assert text(value) == written


def read(tmp_path: Path, text_: str, shell: dict[str, str] | None = None) -> Configurations:
    (tmp_path / "template.yaml").write_text(text_, encoding="utf-8")
    return Configurations(tmp_path / "template.yaml", OWN, shell or {})


def block(properties: str, more: str = "") -> str:
    return f"Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Properties: {{{properties}}}\n{more}"


def test_lambdas_own_defaults_are_three_seconds_and_128_mb(tmp_path: Path) -> None:
    configuration = read(tmp_path, block("CodeUri: functions/a/")).of(tmp_path / "functions" / "a")
    assert configuration
    assert (configuration.handler, configuration.timeout, configuration.memory) == ("app.handler", 3, 128)
    assert (configuration.reserved, configuration.log_format, configuration.variables) == (None, "Text", {})


def test_a_value_of_a_function_overrides_globals(tmp_path: Path) -> None:
    globals_ = "Globals: {Function: {Timeout: 28, MemorySize: 512, Handler: main.run}}\n"
    configuration = read(tmp_path, globals_ + block("CodeUri: ./a, Timeout: 5")).of(tmp_path / "a")
    assert configuration
    assert (configuration.handler, configuration.timeout, configuration.memory) == ("main.run", 5, 512)


def test_a_folder_of_two_functions_uses_the_block_with_its_name(tmp_path: Path) -> None:
    two = block(
        "CodeUri: a, Timeout: 1",
        "  G:\n    Type: AWS::Serverless::Function\n"
        "    Properties: {CodeUri: a, Timeout: 2, FunctionName: !Sub '${AWS::StackName}_a'}\n",
    )
    configuration = read(tmp_path, two).of(tmp_path / "a")
    assert configuration
    assert configuration.timeout == 2


def test_a_function_that_is_not_deployed_has_no_configuration(tmp_path: Path) -> None:
    conditions = "Conditions: {Never: !Equals [a, b]}\n"
    absent = conditions + block("CodeUri: a").replace("    Type", "    Condition: Never\n    Type")
    assert read(tmp_path, absent).of(tmp_path / "a") is None
    assert read(tmp_path, absent).of(tmp_path / "b") is None


def test_a_variable_without_a_local_value_is_reported_with_its_fix(tmp_path: Path) -> None:
    stream = block("CodeUri: a, Environment: {Variables: {STREAM: !GetAtt Table.StreamArn}}")
    with pytest.raises(Problem) as error:
        read(tmp_path, stream).of(tmp_path / "a")
    message = "template.yaml: STREAM has no value here (Table): set STREAM in the environment"
    assert str(error.value) == message
    configuration = read(tmp_path, stream, {"STREAM": "mine"}).of(tmp_path / "a")
    assert configuration
    assert configuration.variables == {"STREAM": "mine"}


def test_a_wrong_call_of_a_cloudformation_function_is_reported_in_one_line(tmp_path: Path) -> None:
    wrong = block("CodeUri: a, Environment: {Variables: {X: !If [OnlyOne]}}", "Conditions: {OnlyOne: !Equals [a, a]}\n")
    with pytest.raises(Problem, match=r"X has no value here \(Fn::If\)"):
        read(tmp_path, wrong).of(tmp_path / "a")


@pytest.mark.parametrize(
    ("written", "message"),
    [("{]", "template.yaml is no template: line 1: "), ("[]", "template.yaml is no template: it has no Resources")],
)
def test_an_invalid_template_is_reported_in_one_line(tmp_path: Path, written: str, message: str) -> None:
    with pytest.raises(Problem, match=message) as error:
        read(tmp_path, written)
    assert "\n" not in str(error.value)


def test_the_template_is_found_beside_the_folder_of_functions(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    assert template.find(tmp_path / "functions") is None
    (tmp_path / "template.yaml").write_text("Resources: {}\n", encoding="utf-8")
    assert template.find(tmp_path / "functions") == tmp_path / "template.yaml"


def test_the_projects_own_template_has_a_block_for_every_function_with_the_key() -> None:
    own_template = Configurations(ROOT / "template.yaml", OWN, {})
    configuration = [own_template.of(app.parent) for app in find(ROOT / "functions") if app.parent.name != SIGN_IN]
    assert {block_.variables["MCP_KMS_KEYS"] if block_ else None for block_ in configuration} == {KEY}


def test_sections_without_entries_and_loops_are_no_resources() -> None:
    written = "Parameters:\nGlobals:\nResources:\n  Table:\n  Queue: {Type: AWS::SQS::Queue, Properties: }\n"
    parsed = template.parse(f"{written}  Fn::ForEach::Topics: [Name, [a, b], {{}}]\n")
    assert parsed["Parameters"] == parsed["Globals"]["Function"] == {}
    assert parsed["Resources"] == {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {}}}
