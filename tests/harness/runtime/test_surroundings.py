"""The environment of a process: Lambda's context and variables, the template's values, and no variable of the shell."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from mcp_functions_harness import Problem
from mcp_functions_harness.command import run as main

from .conftest import PID, write_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from http.client import HTTPConnection
    from pathlib import Path

    from .conftest import Stack

    Deploy = Callable[..., Stack]

ENVIRON = "import os\ndef handler(event, context):\n    return dict(os.environ)\n"
CONTEXT = """
def handler(event, context):
    names = ("function_name", "aws_request_id", "invoked_function_arn", "log_group_name", "log_stream_name",
             "function_version", "memory_limit_in_mb", "client_context")
    return {name: getattr(context, name) for name in names} | {"left": context.get_remaining_time_in_millis()}
"""
GLOBALS = """
Parameters:
  Stage: {Type: String, Default: dev}
Conditions:
  IsProduction: !Equals [!Ref Stage, prod]
  IsTried: !Equals [!Ref Stage, dev]
Globals:
  Function:
    Timeout: 7
    MemorySize: 256
    Environment:
      Variables:
        MCP_STACK: !Ref AWS::StackName
        MCP_AUTH_MODE: iam
        OF_ALL: everybody
        BANK: !If [IsProduction, https://bank.example, !Ref AWS::NoValue]
        MODE: !If [IsTried, open, closed]
"""


def test_the_context_object_has_the_members_of_lambda(deploy: Deploy) -> None:
    stack = deploy({"tells": CONTEXT}, {"tells": "{Timeout: 5, MemorySize: 192}"})
    values = stack.value("tells")
    assert values["function_name"] == "local_tells"
    assert values["invoked_function_arn"] == "arn:aws:lambda:us-east-1:123456789012:function:local_tells"
    assert values["log_group_name"] == "/aws/lambda/local_tells"
    assert values["aws_request_id"] == stack.harness.invocations[-1].request_id
    assert (values["function_version"], values["memory_limit_in_mb"]) == (
        "$LATEST",
        "192",
    )
    assert 0 < values["left"] <= 5000


def test_a_function_gets_the_variables_of_the_template_and_the_settings_of_the_harness(deploy: Deploy) -> None:
    own = "{Environment: {Variables: {OF_ONE: !Sub '${AWS::StackName}/${AWS::Region}', OF_ALL: mine}}}"
    stack = deploy({"one": ENVIRON, "other": ENVIRON}, {"one": own}, GLOBALS)
    one, other = stack.value("one"), stack.value("other")
    assert (one["OF_ONE"], one["OF_ALL"]) == ("local/us-east-1", "mine")
    assert ("OF_ONE" in other, other["OF_ALL"]) == (False, "everybody")
    assert (one["MCP_STACK"], one["MCP_AUTH_MODE"], one["MODE"]) == ("local", "none", "open")
    assert "BANK" not in one  # AWS::NoValue
    assert "MCP_STAGE" not in one  # the template does not set it, so it is not there, as on Lambda


def test_a_function_has_a_kms_key_only_if_the_template_gives_it_one(deploy: Deploy) -> None:
    key = "{Environment: {Variables: {MCP_KMS_KEYS: !GetAtt Key.Arn}}}"
    keyed = "  Key: {Type: AWS::KMS::Key}\n"
    stack = deploy({"asks": ENVIRON, "adds": ENVIRON}, {"asks": key}, resources=keyed)
    assert stack.value("asks")["MCP_KMS_KEYS"] == os.environ["MCP_KMS_KEYS"]  # the harness's own
    assert "MCP_KMS_KEYS" not in stack.value("adds")


def test_without_a_template_the_harness_sets_every_variable(deploy: Deploy, tmp_path: Path) -> None:
    stack = deploy({"tells": ENVIRON}, template=False)
    assert not (tmp_path / "template.yaml").exists()
    values = stack.value("tells")
    assert (
        values["MCP_STACK"],
        values["MCP_STAGE"],
        values["MCP_KMS_KEYS"],
    ) == (
        "local",
        "local",
        os.environ["MCP_KMS_KEYS"],
    )
    assert values["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "512"


def test_a_function_without_a_block_runs_with_a_warning(deploy: Deploy, tmp_path: Path) -> None:
    write_project(tmp_path, {"forgotten": ENVIRON})
    stack = deploy({"tells": ENVIRON})  # its template knows of no other
    assert stack.log("forgotten") == ["template.yaml has no block for it: it runs with the harness's own settings"]
    assert stack.value("forgotten")["MCP_STAGE"] == "local"


def test_no_variable_of_the_shell_reaches_a_function(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRODUCTION_PASSWORD", "hunter2")
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "real")
    values = deploy({"tells": ENVIRON}).value("tells")
    assert not {"PRODUCTION_PASSWORD", "AWS_PROFILE", "HOME", "USER"} & values.keys()
    assert (
        values["AWS_SECRET_ACCESS_KEY"],
        values["AWS_SHARED_CREDENTIALS_FILE"],
    ) == ("local", os.devnull)
    assert values["AWS_ENDPOINT_URL_KMS"].startswith("http://127.0.0.1:")


def test_a_variable_of_the_shell_overrides_a_variable_of_the_template(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TABLE", "mine")
    monkeypatch.setenv("MCP_STACK", "another")
    own = "{Environment: {Variables: {TABLE: theirs, MCP_STACK: !Ref AWS::StackName}}}"
    values = deploy({"tells": ENVIRON}, {"tells": own}).value("tells")
    assert (values["TABLE"], values["MCP_STACK"]) == ("mine", "local")


def test_a_function_gets_the_environment_variables_of_lambda(deploy: Deploy) -> None:
    values = deploy({"tells": ENVIRON}, {"tells": "{LoggingConfig: {LogFormat: JSON}}"}).value("tells")
    assert values["AWS_EXECUTION_ENV"] == f"AWS_Lambda_python{sys.version_info.major}.{sys.version_info.minor}"
    assert (values["AWS_LAMBDA_FUNCTION_NAME"], values["_HANDLER"]) == (
        "local_tells",
        "app.handler",
    )
    assert (
        values["AWS_REGION"],
        values["TZ"],
        values["AWS_LAMBDA_LOG_FORMAT"],
    ) == ("us-east-1", ":UTC", "JSON")
    assert values["LAMBDA_TASK_ROOT"].endswith("/functions/tells")
    assert values["_X_AMZN_TRACE_ID"].startswith("Root=1-")


def test_two_environments_of_a_function_write_to_two_log_streams(deploy: Deploy) -> None:
    stack = deploy({"tells": ENVIRON}, reuse=False)
    assert len({stack.value("tells")["AWS_LAMBDA_LOG_STREAM_NAME"] for _ in range(2)}) == 2


def test_a_handler_may_have_another_name(deploy: Deploy) -> None:
    stack = deploy({"main": "def run(event, context):\n    return event\n"}, {"main": "{Handler: app.run}"})
    assert stack.value("main", {"a": "ż"}) == {"a": "ż"}


def test_a_response_that_is_not_json_is_an_internal_server_error_over_http(
    deploy: Deploy, connect: Callable[[str], HTTPConnection]
) -> None:
    stack = deploy({"returns_bytes": "def handler(event, context):\n    return b'hunter2'\n"})
    connection = connect(stack.harness.url)
    connection.request("POST", "/mcp/returns_bytes")
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())) == (500, {"message": "Internal Server Error"})


def test_the_harness_lists_functions_without_starting_a_process(deploy: Deploy) -> None:
    stack = deploy({"tells": PID})
    assert [function.handlers for function in stack.harness.functions.values()] == [()]
    assert stack.harness.invocations == []


def test_functions_start_although_one_of_them_does_not_load(deploy: Deploy) -> None:
    stack = deploy({"tells": PID, "broken": "import nothing_of_this_name\n"})
    assert stack.value("tells")
    with pytest.raises(Problem, match=r"functions/broken/app\.py does not load: ModuleNotFoundError"):
        stack.harness.functions  # noqa: B018 - to describe them, they are loaded


@pytest.mark.usefixtures("functions")
def test_a_missing_runtime_is_reported_in_one_line_with_its_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "awslambdaric", None)
    assert main(["serve", "--runtime", "--port", "0"]) == 2
    message = "mcp-functions: awslambdaric is not installed: pip install 'mcp-functions[runtime]'\n"
    assert capsys.readouterr() == ("", message)


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(tmp_path, {"tells": PID})
    monkeypatch.chdir(tmp_path)
