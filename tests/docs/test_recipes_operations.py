"""The recipes of operators: canaries, a firewall, a deleted stack, deployment from GitHub."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import tomllib
import zipfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import yaml
from moto import mock_aws

from functions.update_work_item import app as update_work_item
from mcp_functions import serve
from mcp_functions.seal.kms import KmsKey
from mcp_functions_harness import template
from mcp_functions_harness.testing import Conversation
from tests.docs.test_recipes import CANARY, OWN_STACKS, PAGE, VERSIONS, merge_templates
from tests.project import test_build
from tests.support import filters

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp_functions.http.gateway import LambdaFunction

ROOT = test_build.ROOT
RECIPES = ROOT / "docs/recipes"
SHELL = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE.text, re.DOTALL)).replace("\\\n", " ")
needs_sam = test_build.pytestmark


def commands(begin: str) -> list[list[str]]:
    """Return the words of the page's commands that begin so."""
    return [shlex.split(line) for line in re.findall(rf"^{re.escape(begin)}(?:'[^']*'|.)*$", SHELL, re.MULTILINE)]


@contextmanager
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Provide boto3's clients of moto, in this process."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "nobody")
    for name in [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL")]:
        monkeypatch.delenv(name)
    with mock_aws():
        yield lambda service: boto3.client(service, region_name="us-east-1")


# ---- Canaries


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("canary") / "template.json"
    written = merge_templates(merge_templates(template.read(ROOT / "template.yaml"), VERSIONS), CANARY)
    path.write_text(json.dumps(written), encoding="utf-8")
    resources: dict[str, Any] = json.loads(test_build.run("python", test_build.TRANSLATE, path))["Resources"]
    return resources


@needs_sam
def test_an_alarm_sets_the_alias_back_to_a_kept_version(canary: dict[str, Any]) -> None:
    group = canary["UpdateWorkItemDeploymentGroup"]["Properties"]
    assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
    watched = [alarm["Name"]["Ref"] for alarm in group["AlarmConfiguration"]["Alarms"]]
    assert {canary[name]["Type"] for name in watched} == {"AWS::CloudWatch::Alarm"}
    kept = {name: one["DeletionPolicy"] for name, one in canary.items() if one["Type"] == "AWS::Lambda::Version"}
    (version,) = [name for name in kept if name.startswith("UpdateWorkItemVersion")]
    assert kept.pop(version) == "Retain"
    assert set(kept.values()) == {"Delete"}
    dimensions = {one["Name"]: one["Value"] for one in canary["UpdateWorkItemDies"]["Properties"]["Dimensions"]}
    assert dimensions["ExecutedVersion"] == {"Fn::GetAtt": [version, "Version"]}


def test_the_metric_of_the_canary_counts_crashes_but_no_client_errors() -> None:
    properties = CANARY["Resources"]["UpdateWorkItemFailedFilter"]["Properties"]
    alarm = CANARY["Resources"]["UpdateWorkItemFails"]["Properties"]
    assert alarm["MetricName"] == properties["MetricTransformations"][0]["MetricName"]
    line = {"level": "ERROR", "handler": "update_work_item", "outcome": "crashed"}
    pattern = properties["FilterPattern"]
    assert filters.matches(pattern, line)
    assert not filters.matches(pattern, {**line, "handler": "add"})
    assert not filters.matches(pattern, {**line, "level": "INFO", "outcome": "refused"})
    assert update_work_item.handler.handlers[0].name == line["handler"]


def test_an_alias_can_be_set_to_a_kept_version(monkeypatch: pytest.MonkeyPatch) -> None:
    (back,) = commands("aws lambda update-alias")
    assert back[3::2] == ["--function-name", "--name", "--function-version"]
    with aws(monkeypatch) as client:
        trust = json.dumps({"Version": "2012-10-17", "Statement": []})
        role = client("iam").create_role(RoleName="r", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        lambdas, name = client("lambda"), back[4]
        given = {"FunctionName": name, "Runtime": "python3.13", "Handler": "app.handler", "Role": role}
        lambdas.create_function(**given, Code={"ZipFile": zip_of("1")})
        old = lambdas.publish_version(FunctionName=name)["Version"]
        lambdas.update_function_code(FunctionName=name, ZipFile=zip_of("2"))
        new = lambdas.publish_version(FunctionName=name)["Version"]
        lambdas.create_alias(FunctionName=name, Name=back[6], FunctionVersion=new)
        lambdas.update_alias(FunctionName=name, Name=back[6], FunctionVersion=old)
        invoked, kept, newest = (
            lambdas.get_function_configuration(FunctionName=name, Qualifier=qualifier)["CodeSha256"]
            for qualifier in (back[6], old, new)
        )
        assert invoked == kept != newest


def zip_of(code: str) -> bytes:
    """Return a zip with one module."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("app.py", code)
    return out.getvalue()


# ---- A firewall


@needs_sam
@pytest.mark.parametrize("path", OWN_STACKS, ids=lambda path: path.name)
def test_every_separate_stack_of_the_page_passes_the_linter(path: Path) -> None:
    test_build.run("cfn-lint", path)


def test_the_firewall_protects_the_distribution_and_passes_bodies_and_tokens_on() -> None:
    waf = template.read(RECIPES / "waf.yaml")
    edge = waf["Resources"]["Edge"]["Properties"]["DistributionConfig"]
    assert edge["WebACLId"] == {"Fn::GetAtt": "Firewall.Arn"}
    firewall = waf["Resources"]["Firewall"]["Properties"]
    assert firewall["Scope"] == "CLOUDFRONT"
    rules = [rule["Statement"].get("ManagedRuleGroupStatement", {}).get("Name") for rule in firewall["Rules"]]
    assert "AWSManagedRulesCommonRuleSet" not in rules
    samples = [rule["VisibilityConfig"]["SampledRequestsEnabled"] for rule in (firewall, *firewall["Rules"])]
    assert not any(samples), "a sample would show tokens"
    (deploy,) = commands("aws cloudformation deploy")
    assert {"us-east-1", "docs/recipes/waf.yaml"} <= set(deploy)
    assert {word.partition("=")[0] for word in deploy if "=" in word} <= waf["Parameters"].keys()


# ---- A deleted stack


@needs_sam
def test_a_deleted_stack_leaves_its_key_table_bucket_and_layers() -> None:
    translated = json.loads(test_build.run("python", test_build.TRANSLATE, ROOT / "template.yaml"))
    kept = [one for one in translated["Resources"].values() if one.get("DeletionPolicy", "Delete").startswith("Retain")]
    assert {one["Type"] for one in kept} == {
        "AWS::DynamoDB::Table",
        "AWS::KMS::Key",
        "AWS::Lambda::LayerVersion",
        "AWS::S3::Bucket",
    }


ALLOW_ALL_POLICY = json.dumps(
    {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "kms:*", "Resource": "*"}]}
)


def test_a_conversation_continues_after_its_stack_was_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with aws(monkeypatch) as client:
        stacks = client("cloudformation")
        stacks.create_stack(StackName="my-stack", TemplateBody=(RECIPES / "adopt.yaml").read_text(encoding="utf-8"))
        resources = stacks.describe_stack_resources(StackName="my-stack")["StackResources"]
        names = {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in resources}
        arn = f"arn:aws:kms:us-east-1:123456789012:key/{names['RequestStateKey']}"
        client("kms").put_key_policy(KeyId=arn, PolicyName="default", Policy=ALLOW_ALL_POLICY)  # moto cannot read ours
        talk = Conversation(sealed_by(arn, client)).call(workItemId=7, fields={"System.State": "Resolved"})
        assert talk.asked
        stacks.delete_stack(StackName="my-stack")
        assert client("dynamodb").list_tables()["TableNames"] == [names["Table"]]
        talk.upgrade(sealed_by(arn, client)).accept(resolution="Duplicate")
        assert talk.asked == ["duplicate_of"]


def sealed_by(arn: str, client: Any) -> LambdaFunction:  # noqa: ANN401 - boto3's clients have no type of their own
    """Make the function as a new deployment with this key has it."""
    return serve(*update_work_item.handler.handlers, wrapping=[KmsKey(arn, lambda: client("kms"))])


def test_the_imported_resources_equal_those_of_the_template() -> None:
    ours = template.read(ROOT / "template.yaml")["Resources"]
    adopted = template.read(RECIPES / "adopt.yaml")["Resources"]
    assert adopted.keys() == {"RequestStateKey", "Table"}
    for name, resource in adopted.items():
        made = {key: value for key, value in ours[name].items() if key != "Condition"}
        assert resource == {**made, "DeletionPolicy": "Retain"}, "an import needs the policy"


@needs_sam
def test_the_import_names_resources_as_cloudformation_identifies_them() -> None:
    (command,) = commands("aws cloudformation create-change-set")
    asked = json.loads(command[command.index("--resources-to-import") + 1])
    adopted = template.read(RECIPES / "adopt.yaml")["Resources"]
    assert {one["LogicalResourceId"]: one["ResourceType"] for one in asked} == {
        name: resource["Type"] for name, resource in adopted.items()
    }
    for one in asked:
        schema = "from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER as m; import sys; "
        schema += "print(*m.get_resource_schema('us-east-1', sys.argv[1]).schema['primaryIdentifier'])"
        wanted = test_build.run("python", "-c", schema, one["ResourceType"]).split()
        assert [f"/properties/{name}" for name in one["ResourceIdentifier"]] == wanted


# ---- GitHub


WORKFLOW: dict[Any, Any] = yaml.safe_load((RECIPES / "github-actions.yml").read_text(encoding="utf-8"))
STEPS = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def test_a_job_of_the_pipeline_has_only_the_permissions_that_it_needs() -> None:
    assert WORKFLOW["permissions"] == {}
    assert {name: job["permissions"] for name, job in WORKFLOW["jobs"].items()} == {
        "test": {"contents": "read"},
        "deploy": {"contents": "read", "id-token": "write"},
    }
    # YAML 1.1 reads the key `on` as true.
    assert WORKFLOW[True] == {"push": {"branches": ["main"]}}
    assert WORKFLOW["jobs"]["deploy"]["needs"] == "test"
    assert "secrets." not in (RECIPES / "github-actions.yml").read_text(encoding="utf-8")
    for step in STEPS:
        assert "${{" not in step.get("run", ""), "an expression in a shell command can inject code"


def test_every_action_and_the_sam_cli_have_a_full_version_number() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", one) for one in used), used
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert any(step.get("run", "").endswith(f"pip install {extras['sam'][0]}") for step in STEPS)


@needs_sam
def test_the_commands_of_the_pipeline_exist_with_their_options() -> None:
    deploys = [shlex.split(step["run"]) for step in STEPS if step.get("run", "").startswith("sam ")]
    environments = tomllib.loads((ROOT / "samconfig.toml").read_text(encoding="utf-8"))
    for words in [*deploys, *commands("sam pipeline bootstrap"), *commands("sam sync")]:
        options = [word for word in words if word.startswith("--")]
        offered = test_build.run("sam", *words[1 : words.index(options[0])], "--help")
        assert [option for option in options if not re.search(rf"{option}\b", offered)] == []
        if "--config-env" in words:
            assert words[words.index("--config-env") + 1] in environments


def test_only_one_repository_and_branch_can_assume_the_role() -> None:
    (statement,) = json.loads((RECIPES / "github-trust.json").read_text(encoding="utf-8"))["Statement"]
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert statement["Condition"].keys() == {"StringEquals"}
    issuer = "token.actions.githubusercontent.com"
    assert statement["Principal"]["Federated"].endswith(f":oidc-provider/{issuer}")
    assert statement["Condition"]["StringEquals"] == {
        f"{issuer}:aud": "sts.amazonaws.com",
        f"{issuer}:sub": "repo:my-org/my-repository:ref:refs/heads/main",
    }
