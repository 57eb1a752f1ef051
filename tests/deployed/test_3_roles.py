"""Each role tries with its own keys what the others may do. tests/policies/test_iam.py asks a simulator the same."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.deployed import conversations

if TYPE_CHECKING:
    from tests.deployed.stack import Stack

ENDPOINT = "mcp"  # it seals and keeps what clients of 2025 carry
WORKER = "-worker"
DENIED = {"AccessDenied", "AccessDeniedException"}


class Role(NamedTuple):
    """The role of one function: "audit_year", or "audit_year-worker"."""

    function: str
    session: boto3.Session

    @property
    def folder(self) -> str:
        return self.function.removesuffix(WORKER)

    @property
    def handlers(self) -> list[Any]:
        return list(importlib.import_module(f"functions.{self.folder}.app").handler.handlers)

    @property
    def seals(self) -> bool:
        return self.folder == ENDPOINT or any(one.needs_state for one in self.handlers)

    @property
    def keeps(self) -> bool:
        return self.folder == ENDPOINT or any(one.needs_table for one in self.handlers)


@pytest.fixture(scope="module")
def roles(shop: Stack) -> list[Role]:
    """Let the administrator assume each role, with the keys that its function has too."""
    iam, sts, lambdas = (shop.account.client(name) for name in ("iam", "sts", "lambda"))
    me = sts.get_caller_identity()["Account"]
    trust = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{me}:root"}, "Action": "sts:AssumeRole"}
    found = []
    for name in shop.functions:
        arn = lambdas.get_function_configuration(FunctionName=name)["Role"]
        role = arn.rpartition("/")[2]
        before = iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
        document = conversations.policy(*before["Statement"], trust)
        iam.update_assume_role_policy(RoleName=role, PolicyDocument=document)
        keys = sts.assume_role(RoleArn=arn, RoleSessionName="tried")["Credentials"]
        session = boto3.Session(
            keys["AccessKeyId"],
            keys["SecretAccessKey"],
            keys["SessionToken"],
            region_name=shop.account.session.region_name,
        )
        found.append(Role(name.removeprefix(f"{shop.name}_"), session))
    return found


def may(call: Any, **arguments: Any) -> bool:  # noqa: ANN401 - boto3's
    """Whether a call is allowed; an error of another kind fails the test."""
    try:
        call(**arguments)
    except ClientError as error:
        if error.response["Error"]["Code"] in DENIED:
            return False
        raise
    return True


def test_a_role_seals_under_its_own_name_alone(shop: Stack, roles: list[Role]) -> None:
    key, folders = shop.outputs["RequestStateKey"], sorted({role.folder for role in roles})
    allowed: dict[str, list[str]] = {}
    for role in roles:
        kms = shop.account.client("kms", role.session)
        for folder in folders:
            context = {
                "purpose": "mcp-request-state",
                "service": f"{shop.name}/{folder}",
                "stage": "prod",
                "generation": "1",
                "born": "1785000000",
            }
            if may(kms.generate_data_key, KeyId=key, KeySpec="AES_256", EncryptionContext=context):
                allowed.setdefault(role.function, []).append(folder)
            less = {name: value for name, value in context.items() if name != "stage"}
            assert not may(kms.generate_data_key, KeyId=key, KeySpec="AES_256", EncryptionContext=less)
        assert not may(kms.generate_data_key, KeyId=key, KeySpec="AES_256")
        assert not may(kms.schedule_key_deletion, KeyId=key, PendingWindowInDays=30)
    assert allowed == {role.function: [role.folder] for role in roles if role.seals}


def test_a_role_keeps_items_under_its_own_name_alone(shop: Stack, roles: list[Role]) -> None:
    table, folders = shop.resources["Table"]["PhysicalResourceId"], sorted({role.folder for role in roles})
    allowed: dict[str, list[str]] = {}
    for role in roles:
        dynamodb = shop.account.client("dynamodb", role.session)
        for folder in folders:
            key = {"key": {"S": f"{shop.name}/{folder}/tried"}}
            if may(dynamodb.put_item, TableName=table, Item=key):
                assert may(dynamodb.get_item, TableName=table, Key=key)
                assert may(dynamodb.delete_item, TableName=table, Key=key)
                allowed.setdefault(role.function, []).append(folder)
        assert not may(dynamodb.scan, TableName=table)
        assert not may(dynamodb.delete_table, TableName=table)
    assert allowed == {role.function: [role.folder] for role in roles if role.keeps}


def test_the_endpoint_invokes_all_and_a_function_its_worker_alone(shop: Stack, roles: list[Role]) -> None:
    allowed: dict[str, list[str]] = {}
    for role in roles:
        lambdas = shop.account.client("lambda", role.session)
        allowed[role.function] = [
            other.function
            for other in roles
            if may(lambdas.invoke, FunctionName=f"{shop.name}_{other.function}", InvocationType="DryRun")
        ]
        assert not may(lambdas.update_function_configuration, FunctionName=f"{shop.name}_add", Timeout=3)
    everyone = [role.function for role in roles]
    workers = {role.function: [f"{role.folder}{WORKER}"] for role in roles if f"{role.folder}{WORKER}" in everyone}
    assert allowed == {name: everyone if name == ENDPOINT else workers.get(name, []) for name in everyone}
