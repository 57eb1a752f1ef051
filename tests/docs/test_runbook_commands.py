"""The commands of AWS's CLI in the pages for operators: each is a call that AWS's models know; moto runs some.

A command is read as the CLI reads it: `aws kms enable-key --key-id X` is the operation EnableKey with the member KeyId.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import boto3
import jmespath  # type: ignore[import-untyped]
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator
from moto import mock_aws
from moto.events.models import EventPattern

from mcp_functions_harness import template
from tests.docs.pages import FENCED, Page

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = [Page.named(name) for name in ("runbooks.md", "security.md", "identity.md")]
COMMAND = re.compile(r"aws [a-z0-9]+ [a-z]+-[a-z-]+ (?:'[^']*(?:'\"\$NOW\"'[^']*)?'|[^'\n|;])*")
OF_THE_CLI = {"query", "output", "region"}  # options of the command line alone
KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
SHELL = {
    '"$KEY_ARN"': KEY,
    '"$role"': "shop-AddRole",
    "$path": "token",
    "<api>": "a1b2c3",
    "'\"$NOW\"'": "2026-11-29T00:00:00Z",
}
RULE = next(text for text in re.findall(r"```yaml\n(.*?)```", PAGES[0].text, re.DOTALL) if "AWS::Events::Rule" in text)


def commands() -> Iterator[str]:
    """Yield each command: in a block with its continued lines, or in a line of text."""
    for page in PAGES:
        for kind, text in FENCED.findall(page.text):
            if kind == "sh":
                joined = re.sub(r"\\\n\s*", " ", text)
                yield from COMMAND.findall(joined)
        yield from re.findall(r"`(aws [a-z0-9]+ [a-z]+-[^`…]+)`", page.text)


def read(command: str) -> tuple[Any, str, dict[str, Any]]:
    """Return the client, its method and the parameters of a command."""
    for variable, value in SHELL.items():
        command = command.replace(variable, value)
    _aws, service, operation, *words = shlex.split(command.rstrip(") "))
    session: Any = boto3.Session()
    client = session.client(service)
    method = operation.replace("-", "_")
    shape = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[method]).input_shape
    members = {xform_name(name).replace("_", "-"): name for name in shape.members}
    given: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            given[word[2:]] = []
        else:
            given[list(given)[-1]].append(word)
    for expression in given.get("query", ()):
        jmespath.compile(expression)
    parameters = {
        members[name]: value_of(shape.members[members[name]], values)
        for name, values in given.items()
        if name not in OF_THE_CLI
    }
    report = ParamValidator().validate(parameters, shape)
    assert not report.has_errors(), report.generate_report()
    return client, method, parameters


def value_of(shape: Any, values: list[str]) -> Any:  # noqa: ANN401 - botocore's
    """Return a value as the CLI reads it: of a list, each word; of a structure, `Name=value,…`."""
    if shape.type_name == "list":
        return [value_of(shape.member, [value]) for value in values]
    if shape.type_name == "structure":
        return dict(pair.split("=", 1) for pair in values[0].split(","))
    return {"integer": int}.get(shape.type_name, str)(values[0])


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    with mock_aws():
        yield


def run(pattern: str) -> Any:  # noqa: ANN401 - botocore's
    """Run the one command that begins like this."""
    (command,) = {one for one in commands() if one.startswith(f"aws {pattern}")}
    client, method, parameters = read(command)
    return getattr(client, method)(**parameters)


@pytest.mark.parametrize("command", [one for one in sorted(set(commands())) if " wait " not in one])
@pytest.mark.usefixtures("aws")
def test_a_command_is_a_call_that_aws_knows(command: str) -> None:
    read(command)


@pytest.mark.usefixtures("aws")
def test_the_commands_bring_a_key_back_whose_deletion_was_scheduled(monkeypatch: pytest.MonkeyPatch) -> None:
    kms: Any = boto3.client("kms")
    key = kms.create_key()["KeyMetadata"]["KeyId"]  # moto finds no key by its ARN here
    monkeypatch.setitem(SHELL, '"$KEY_ARN"', key)
    kms.schedule_key_deletion(KeyId=key)
    run("kms cancel-key-deletion")
    assert kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] == "Disabled", "so it has to be enabled"
    run("kms enable-key")
    assert kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] == "Enabled"


@pytest.mark.usefixtures("aws")
def test_the_commands_revoke_the_sessions_of_a_role_and_end_that() -> None:
    iam: Any = boto3.client("iam")
    iam.create_role(RoleName="shop-AddRole", AssumeRolePolicyDocument="{}")
    run("iam put-role-policy")
    policy = iam.get_role_policy(RoleName="shop-AddRole", PolicyName="deny-older-sessions")["PolicyDocument"]
    (statement,) = policy["Statement"]
    assert statement["Condition"] == {"DateLessThan": {"aws:TokenIssueTime": "2026-11-29T00:00:00Z"}}
    run("iam delete-role-policy")
    with pytest.raises(ClientError, match="NoSuchEntity"):
        iam.get_role_policy(RoleName="shop-AddRole", PolicyName="deny-older-sessions")


@pytest.mark.usefixtures("aws")
def test_the_command_changes_the_client_secret() -> None:
    secrets: Any = boto3.client("secretsmanager")
    secrets.create_secret(Name="front", SecretString="old")
    run("secretsmanager put-secret-value")
    assert secrets.get_secret_value(SecretId="front")["SecretString"] == "file://secret.txt", "the CLI reads the file"


@pytest.mark.usefixtures("aws")
def test_the_rule_tells_the_topic_of_a_key_that_is_about_to_go() -> None:
    """The block can be pasted into a template; moto's EventBridge matches the pattern with CloudTrail's event."""
    block = template.parse(RULE)["Resources"]
    rule = block["KeyIsGoing"]["Properties"]
    pattern = EventPattern.load(json.dumps(rule["EventPattern"]))
    for name, is_told in {"ScheduleKeyDeletion": True, "DisableKey": True, "Decrypt": False}.items():
        event: Any = {
            "source": "aws.kms",
            "detail-type": "AWS API Call via CloudTrail",
            "detail": {"eventSource": "kms.amazonaws.com", "eventName": name},
        }
        assert pattern.matches_event(event) is is_told
    assert rule["Targets"] == [{"Id": "topic", "Arn": {"Ref": "AlarmTopic"}}]
