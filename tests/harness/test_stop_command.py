"""`mcp-functions stop` and `start`: the services' own calls, which need no healthy stack; AWS is moto."""

from __future__ import annotations

import io
import shutil
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator
from moto import mock_aws

from mcp_functions_harness import command

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
STACK, CALLER = "mcp-functions-prod", "2026-11.fbIZn1rBHzMDjVTr"
OTHER = "2026-11.aaaaaaaaaaaaaaaa"
NAMES = (f"{STACK}_add", f"{STACK}_add-worker", f"{STACK}_mcp", "mcp-functions-product_add")
KEY = {"MCP_LOG_CALLERS": "arn:aws:kms:eu-central-1:123456789012:key/a", "MCP_STAGE": "prod"}


class Account:
    """What is deployed, and no stack of CloudFormation: the calls would have nothing to ask there."""

    def __init__(self) -> None:
        session: Any = boto3.Session()
        self.functions, self.gateway, iam = (session.client(name) for name in ("lambda", "apigatewayv2", "iam"))
        role = iam.create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        zipped = io.BytesIO()
        with zipfile.ZipFile(zipped, "w") as archive:
            archive.writestr("app.py", "")
        for name in NAMES:
            self.functions.create_function(
                FunctionName=name,
                Runtime="python3.13",
                Role=role,
                Handler="app.handler",
                Code={"ZipFile": zipped.getvalue()},
                Environment={"Variables": KEY},
            )
        api = self.gateway.create_api(Name=STACK, ProtocolType="HTTP")["ApiId"]
        settings = {"ThrottlingRateLimit": 20.0, "ThrottlingBurstLimit": 30}
        self.gateway.create_stage(ApiId=api, StageName="$default", DefaultRouteSettings=settings)
        self._api = api

    @property
    def throttle(self) -> tuple[float, int]:
        found = self.gateway.get_stage(ApiId=self._api, StageName="$default")["DefaultRouteSettings"]
        return found["ThrottlingRateLimit"], found["ThrottlingBurstLimit"]

    def concurrency(self, name: str) -> int | None:
        found = self.functions.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions")
        return None if found is None else int(found)

    def variables(self, name: str) -> dict[str, str]:
        found: dict[str, str] = self.functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        return found

    def tags(self) -> list[dict[str, str]]:
        arns = [f"arn:aws:lambda:eu-central-1:123456789012:function:{name}" for name in NAMES]
        of_all = [self.functions.list_tags(Resource=arn)["Tags"] for arn in arns]
        return [tags for tags in [*of_all, self.gateway.get_api(ApiId=self._api).get("Tags")] if tags]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("samconfig.toml", "template.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    for folder in ("add", "mcp"):
        (tmp_path / "functions" / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def update_stage(client: Any, call: Any, operation: str, sent: dict[str, Any]) -> Any:  # noqa: ANN401 - botocore's
    """Make a call in moto, which has no UpdateStage: its parameters are checked, and the stage is made again."""
    if operation != "UpdateStage":
        return call(client, operation, sent)
    shape = client.meta.service_model.operation_model(operation).input_shape
    assert not ParamValidator().validate(sent, shape).has_errors()
    client.delete_stage(ApiId=sent["ApiId"], StageName=sent["StageName"])
    return client.create_stage(**sent)


@pytest.fixture
def account(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    assert project
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        call = BaseClient._make_api_call  # type: ignore[attr-defined]  # noqa: SLF001 - as moto's documentation does
        monkeypatch.setattr(BaseClient, "_make_api_call", lambda *sent: update_stage(sent[0], call, *sent[1:]))
        yield Account()


def overrides(project: Path) -> dict[str, str]:
    """Return what the next deployment will send."""
    parameters = tomllib.loads((project / "samconfig.toml").read_text(encoding="utf-8"))["prod"]["global"]["parameters"]
    return dict(item.split("=", 1) for item in parameters["parameter_overrides"])


def test_the_server_stops_and_starts_as_it_was_before(account: Account, project: Path) -> None:
    for _ in range(2):  # the second stop remembers what the first has found
        assert command.run(["stop", "server", "prod", "--now"]) == 0
        assert account.throttle == (0, 0)
    assert {overrides(project)[name] for name in ("RequestsPerSecond", "RequestBurst")} == {"0"}
    assert command.run(["start", "server", "prod", "--now"]) == 0
    assert (account.throttle, account.tags()) == ((20, 30), [])
    assert (overrides(project)["RequestsPerSecond"], overrides(project)["RequestBurst"]) == ("20", "30")


@pytest.mark.parametrize("reserved", [None, 7])
def test_a_function_and_its_worker_stop_and_start_as_before(
    reserved: int | None, account: Account, project: Path
) -> None:
    if reserved:
        account.functions.put_function_concurrency(FunctionName=NAMES[0], ReservedConcurrentExecutions=reserved)
    for _ in range(2):
        assert command.run(["stop", "function", "prod", "add", "--now"]) == 0
        assert [account.concurrency(name) for name in NAMES] == [0, 0, None, None]
    assert overrides(project)["StoppedFunctions"] == "add"
    deployed = {**account.variables(NAMES[2]), "MCP_STOPPED_FUNCTIONS": "mcp,add"}  # by a deployment meanwhile
    account.functions.update_function_configuration(FunctionName=NAMES[2], Environment={"Variables": deployed})
    assert command.run(["start", "function", "prod", "add", "--now"]) == 0
    assert [account.concurrency(name) for name in NAMES] == [reserved, None, None, None]
    assert account.variables(NAMES[2])["MCP_STOPPED_FUNCTIONS"] == "mcp"
    assert (account.tags(), overrides(project)["StoppedFunctions"]) == ([], '""')


def test_a_caller_is_refused_by_every_function_of_the_stack_and_no_other(account: Account, project: Path) -> None:
    for caller in (OTHER, CALLER):
        assert command.run(["stop", "caller", "prod", caller, "--now"]) == 0
    stopped = [account.variables(name).get("MCP_STOPPED_CALLERS") for name in NAMES]
    assert stopped == [f"{OTHER},{CALLER}"] * 3 + [None]
    assert overrides(project)["StoppedCallers"] == f"{OTHER},{CALLER}"
    assert command.run(["start", "caller", "prod", OTHER, "--now"]) == 0
    assert account.variables(NAMES[0]) == {**KEY, "MCP_STOPPED_CALLERS": CALLER}
    assert overrides(project)["StoppedCallers"] == CALLER


def test_without_the_key_of_callers_nobody_is_stopped_and_no_function_breaks(
    account: Account, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    account.functions.update_function_configuration(FunctionName=NAMES[2], Environment={"Variables": {}})
    assert command.run(["stop", "caller", "prod", CALLER, "--now"]) == 2
    assert "nobody is stopped: mcp-functions set … LogCallers=on --now" in capsys.readouterr().err
    assert "MCP_STOPPED_CALLERS" not in account.variables(NAMES[0])
    assert "StoppedCallers" not in overrides(project)


def test_a_first_project_is_stopped_at_once_and_reads_what_a_deployment_does(
    account: Account, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "template.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("  StoppedFunctions:", "  Ours:"), encoding="utf-8")
    assert command.run(["stop", "function", "prod", "add", "--now"]) == 0
    assert account.concurrency(NAMES[0]) == 0
    out = capsys.readouterr().out
    assert "a deployment that changes the same resource ends the stop; mcp-functions add stops" in out
    assert command.run(["stop", "function", "prod", "add"]) == 2


WRITES = {
    "PutFunctionConcurrency": ("function", "add"),
    "UpdateFunctionConfiguration": ("caller", CALLER),
}


@pytest.mark.parametrize("operation", WRITES)
def test_a_refusal_for_one_function_stops_the_others_and_says_what_is_not_done(
    operation: str,
    account: Account,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = BaseClient._make_api_call  # type: ignore[attr-defined]  # noqa: SLF001 - as moto's documentation does

    def refuse(client: Any, name: str, sent: dict[str, Any]) -> Any:  # noqa: ANN401 - botocore's
        if name == operation and sent["FunctionName"] == NAMES[0]:
            raise ClientError({"Error": {"Code": "TooManyRequestsException", "Message": "Rate exceeded"}}, name)
        return call(client, name, sent)

    kind, what = WRITES[operation]
    before = (project / "samconfig.toml").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", refuse)
        assert command.run(["stop", kind, "prod", what, "--now"]) == 2
    said = capsys.readouterr()
    assert f"AWS refused a call for {NAMES[0]}: ClientError: An error occurred (TooManyRequestsException)" in said.out
    assert f"not done for {NAMES[0]}. " in said.err
    assert (project / "samconfig.toml").read_bytes() == before
    if kind == "function":
        assert [account.concurrency(name) for name in NAMES[:2]] == [None, 0]
    else:
        assert [CALLER in account.variables(name).values() for name in NAMES[:3]] == [False, True, True]
    assert command.run(["stop", kind, "prod", what, "--now"]) == 0
    assert "AWS refused" not in capsys.readouterr().out


def test_an_alias_that_serves_an_old_version_is_named(account: Account, capsys: pytest.CaptureFixture[str]) -> None:
    version = account.functions.publish_version(FunctionName=NAMES[0])["Version"]
    account.functions.create_alias(FunctionName=NAMES[0], Name="live", FunctionVersion=version)
    assert command.run(["stop", "caller", "prod", CALLER, "--now"]) == 0
    assert f"but its alias live serves version {version}, which is as before" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stop", "function", "prod", "nothing", "--now"], f"there is no function {STACK}_nothing"),
        (["stop", "function", "prod"], "stop function ENV FOLDER"),
        (["stop", "server", "prod", "add"], "stop server ENV"),
        (["stop", "caller", "prod", "ann"], "a caller is named as in the log"),
        (["stop", "server", "staging"], "no environment staging"),
        (["start", "server", "prod", "--now"], f"mcp-functions did not stop {STACK}"),
        (["stop", "server", "dev", "--now"], "there are 0 HTTP APIs named mcp-functions-dev"),
    ],
)
@pytest.mark.usefixtures("account")
def test_a_wrong_name_is_one_line_and_changes_nothing(
    words: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (project / "samconfig.toml").read_text(encoding="utf-8")
    assert command.run(words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert (project / "samconfig.toml").read_text(encoding="utf-8") == before
