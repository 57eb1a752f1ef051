"""Changes of a deployed stack that a conversation must notice: `make deployed-mutants`.

    policy      a policy is changed in place, by IAM's own API
    template    CloudFormation updates the stack with a changed template

Each row names the conversation that turns red. After each, the change is taken back.
"""

from __future__ import annotations

import json
import secrets
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.deployed import conversations as talks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.deployed.stack import Stack

Json = dict[str, Any]
OTHER_ACCOUNT = "999999999999"


@dataclass(frozen=True)
class Mutant:
    """One change.

    Attributes:
        name: what is wrong then.
        of: the logical id of a policy or of a role with inline policies; "" for the template.
        change: changes the document in place.
        talk: the conversation that must fail.
    """

    name: str
    of: str
    change: Callable[[Json], None]
    talk: Callable[[Stack], None]

    @contextmanager
    def applied(self, stack: Stack) -> Iterator[None]:
        """Change the stack for a block."""
        if self.of:
            with _policy_changed(stack, self.of, self.change):
                yield
        else:
            with _template_changed(stack, self.change):
                yield


# ---- Changes of a policy


def without_action(action: str) -> Callable[[Json], None]:
    """Allow another action in the place of one: a policy needs a statement, and a statement an action."""

    def change(document: Json) -> None:
        for statement in document["Statement"]:
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            statement["Action"] = [one if one != action else "sts:GetCallerIdentity" for one in actions]

    return change


def with_condition(operator: str, key: str, value: object) -> Callable[[Json], None]:
    """Give a condition another value, where it is there."""

    def change(document: Json) -> None:
        conditions = [one.get("Condition", {}).get(operator, {}) for one in document["Statement"]]
        found = [one for one in conditions if key in one]
        assert found, f"no statement has {operator} {key}"
        for each in found:
            each[key] = value

    return change


def with_resource(action: str, resource: str) -> Callable[[Json], None]:
    """Let an action reach another resource."""

    def change(document: Json) -> None:
        found = [one for one in document["Statement"] if action in str(one["Action"])]
        assert found, f"no statement has {action}"
        for each in found:
            each["Resource"] = resource

    return change


def nothing_allowed(document: Json) -> None:
    """Deny whatever was allowed."""
    for statement in document["Statement"]:
        statement["Effect"] = "Deny"
        statement.pop("Condition", None)


# ---- Changes of the template


def api(document: Json) -> Json:
    """Return the OpenAPI document of the API."""
    body: Json = document["Resources"]["HttpApi"]["Properties"]["Body"]
    return body


def without_path(path: str) -> Callable[[Json], None]:
    return lambda document: api(document)["paths"].pop(path) and None


def without_method(path: str, method: str) -> Callable[[Json], None]:
    return lambda document: api(document)["paths"][path].pop(method) and None


def with_security(path: str, method: str, security: list[Json]) -> Callable[[Json], None]:
    def change(document: Json) -> None:
        api(document)["paths"][path][method]["security"] = security

    return change


def with_target(path: str, function: str) -> Callable[[Json], None]:
    """Let a route invoke another function."""

    def change(document: Json) -> None:
        (operation,) = api(document)["paths"][path].values()
        target = operation["x-amazon-apigateway-integration"]
        target["uri"] = json.loads(json.dumps(target["uri"]).replace("${GetWeather.Arn}", f"${{{function}.Arn}}"))

    return change


def with_variable(function: str, name: str, value: object) -> Callable[[Json], None]:
    def change(document: Json) -> None:
        document["Resources"][function]["Properties"]["Environment"]["Variables"][name] = value

    return change


def with_property(function: str, name: str, value: object) -> Callable[[Json], None]:
    def change(document: Json) -> None:
        document["Resources"][function]["Properties"][name] = value

    return change


def with_layers(function: str, keep: str) -> Callable[[Json], None]:
    """Give a function only the layer whose logical id begins so."""

    def change(document: Json) -> None:
        properties = document["Resources"][function]["Properties"]
        properties["Layers"] = [one for one in properties["Layers"] if one["Ref"].startswith(keep)]
        assert len(properties["Layers"]) == 1

    return change


def with_tag(function: str, value: str) -> Callable[[Json], None]:
    """Give the role of a function another name."""

    def change(document: Json) -> None:
        for tag in document["Resources"][f"{function}Role"]["Properties"]["Tags"]:
            if tag["Key"] == "mcp-function":
                tag["Value"] = value

    return change


def without_policy(function: str, policy: str) -> Callable[[Json], None]:
    def change(document: Json) -> None:
        arns = document["Resources"][f"{function}Role"]["Properties"]["ManagedPolicyArns"]
        arns.remove({"Ref": policy})

    return change


MUTANTS = (
    Mutant("no state may be opened", "MaySeal", without_action("kms:Decrypt"), talks.three_rounds),
    Mutant("no state may be sealed", "MaySeal", without_action("kms:GenerateDataKey"), talks.three_rounds),
    Mutant(
        "states of another stage alone",
        "MaySeal",
        with_condition("StringEquals", "kms:EncryptionContext:stage", "dev"),
        talks.three_rounds,
    ),
    Mutant(
        "states of another purpose alone",
        "MaySeal",
        with_condition("StringEquals", "kms:EncryptionContext:purpose", "other"),
        talks.prompt,
    ),
    Mutant(
        "states of one function for all",
        "MaySeal",
        with_condition("StringEquals", "kms:EncryptionContext:service", "shop/ticket"),
        talks.three_rounds,
    ),
    Mutant(
        "a context without the birth of a data key",
        "MaySeal",
        with_condition(
            "ForAllValues:StringEquals", "kms:EncryptionContextKeys", ["purpose", "service", "stage", "generation"]
        ),
        talks.resources,
    ),
    Mutant(
        "a context without a key",
        "MaySeal",
        with_condition("Null", "kms:EncryptionContextKeys", "true"),
        talks.three_rounds,
    ),
    Mutant(
        "another account's key",
        "MaySeal",
        with_resource("kms:Decrypt", f"arn:aws:kms:us-east-1:{OTHER_ACCOUNT}:key/other"),
        talks.three_rounds,
    ),
    Mutant("sealing is denied", "MaySeal", nothing_allowed, talks.resources),
    Mutant("no item may be read", "MayKeep", without_action("dynamodb:GetItem"), talks.task),
    Mutant("no item may be written", "MayKeep", without_action("dynamodb:PutItem"), talks.paid_once),
    Mutant(
        "items of another function alone",
        "MayKeep",
        with_condition("ForAllValues:StringLike", "dynamodb:LeadingKeys", "shop/ticket/*"),
        talks.client_of_2025,
    ),
    Mutant(
        "items without a key alone",
        "MayKeep",
        with_condition("Null", "dynamodb:LeadingKeys", "true"),
        talks.paid_once,
    ),
    Mutant(
        "another table",
        "MayKeep",
        with_resource("dynamodb:PutItem", f"arn:aws:dynamodb:us-east-1:{OTHER_ACCOUNT}:table/other"),
        talks.task,
    ),
    Mutant("no worker may be invoked", "MayKeep", without_action("lambda:InvokeFunction"), talks.task),
    Mutant(
        "another worker may be invoked",
        "MayKeep",
        with_resource("lambda:InvokeFunction", f"arn:aws:lambda:us-east-1:{OTHER_ACCOUNT}:function:other"),
        talks.task,
    ),
    Mutant("the endpoint may invoke nobody", "McpRole", without_action("lambda:InvokeFunction"), talks.add),
    Mutant(
        "the endpoint may invoke another stack",
        "McpRole",
        with_resource("lambda:InvokeFunction", f"arn:aws:lambda:us-east-1:{OTHER_ACCOUNT}:function:other_*"),
        talks.add,
    ),
    Mutant("no route of the endpoint", "", without_path("/mcp"), talks.lists),
    Mutant("no route of a function", "", without_path("/mcp/add"), talks.every_function),
    Mutant("a preflight needs a signature", "", without_method("/mcp", "options"), talks.closed),
    Mutant(
        "the endpoint needs no signature",
        "",
        with_security("/mcp", "x-amazon-apigateway-any-method", [{"NONE": []}]),
        talks.closed,
    ),
    Mutant(
        "a function needs no signature",
        "",
        with_security("/mcp/add", "x-amazon-apigateway-any-method", [{"NONE": []}]),
        talks.closed,
    ),
    Mutant("a route invokes another function", "", with_target("/mcp/get_weather", "Add"), talks.every_function),
    Mutant("a function has another key", "", with_variable("UpdateWorkItem", "MCP_KMS_KEYS", ""), talks.three_rounds),
    Mutant("a function has another stage", "", with_variable("Briefing", "MCP_STAGE", "dev"), talks.prompt),
    Mutant("a function has another stack", "", with_variable("Ticket", "MCP_STACK", "other"), talks.resources),
    Mutant("a function has no table", "", with_variable("PayInvoice", "MCP_TABLE", ""), talks.paid_once),
    Mutant("the endpoint has no table", "", with_variable("Mcp", "MCP_TABLE", ""), talks.client_of_2025),
    Mutant("the endpoint has another mode", "", with_variable("Mcp", "MCP_AUTH_MODE", "jwt"), talks.lists),
    Mutant("a function is stopped", "", with_variable("Add", "MCP_STOPPED_FUNCTIONS", "add"), talks.add),
    Mutant(
        "clients of 2025 are refused", "", with_variable("Mcp", "MCP_EARLIER_REVISIONS", "off"), talks.client_of_2025
    ),
    Mutant("a function has no toolkit", "", with_layers("Add", "DependenciesLayer"), talks.add),
    Mutant("a function has no dependencies", "", with_layers("UpdateWorkItem", "SharedLayer"), talks.three_rounds),
    Mutant("a function has another handler", "", with_property("Add", "Handler", "app.other"), talks.add),
    Mutant("a worker has another handler", "", with_property("AuditYearWorker", "Handler", "app.other"), talks.task),
    Mutant(
        "a worker has another name", "", with_property("AuditYearWorker", "FunctionName", "shop_worker"), talks.task
    ),
    Mutant("a role has the name of another function", "", with_tag("UpdateWorkItem", "ticket"), talks.three_rounds),
    Mutant("a worker has the name of another function", "", with_tag("AuditYearWorker", "ticket"), talks.task),
    Mutant("a role may not seal", "", without_policy("HouseRules", "MaySeal"), talks.resources),
    Mutant("a role may not keep", "", without_policy("PayInvoice", "MayKeep"), talks.paid_once),
)


@contextmanager
def _policy_changed(stack: Stack, name: str, change: Callable[[Json], None]) -> Iterator[None]:
    """Change a managed policy by a new default version, or an inline policy of a role."""
    iam, physical = stack.account.client("iam"), stack.resources[name]["PhysicalResourceId"]
    if name.endswith("Role"):
        (inline,) = iam.list_role_policies(RoleName=physical)["PolicyNames"]
        before = iam.get_role_policy(RoleName=physical, PolicyName=inline)["PolicyDocument"]

        def put(document: Json) -> None:
            iam.put_role_policy(RoleName=physical, PolicyName=inline, PolicyDocument=json.dumps(document))
    else:
        version = iam.get_policy(PolicyArn=physical)["Policy"]["DefaultVersionId"]
        found = iam.get_policy_version(PolicyArn=physical, VersionId=version)["PolicyVersion"]
        before = found["Document"]

        def put(document: Json) -> None:
            for one in iam.list_policy_versions(PolicyArn=physical)["Versions"]:  # five at most
                if not one["IsDefaultVersion"]:
                    iam.delete_policy_version(PolicyArn=physical, VersionId=one["VersionId"])
            iam.create_policy_version(PolicyArn=physical, PolicyDocument=json.dumps(document), SetAsDefault=True)

    changed = deepcopy(before)
    change(changed)
    assert changed != before
    put(changed)
    try:
        yield
    finally:
        put(before)


@contextmanager
def _template_changed(stack: Stack, change: Callable[[Json], None]) -> Iterator[None]:
    """Update the stack with a changed template, and with the one before."""
    cloudformation = stack.account.client("cloudformation")
    before = cloudformation.get_template(StackName=stack.name, TemplateStage="Processed")["TemplateBody"]
    if isinstance(before, str):
        before = json.loads(before)
    changed = deepcopy(before)
    change(changed)
    assert changed != before
    _update(stack, cloudformation, changed)
    try:
        yield
    finally:
        _update(stack, cloudformation, before)


def _update(stack: Stack, cloudformation: Any, template: Json) -> None:  # noqa: ANN401 - a client of boto3
    kept = [{"ParameterKey": one["ParameterKey"], "UsePreviousValue": True} for one in stack.described["Parameters"]]
    with _uploaded(stack, json.dumps(template).encode()) as url:  # it is longer than a request may be
        cloudformation.update_stack(
            StackName=stack.name, TemplateURL=url, Capabilities=["CAPABILITY_IAM"], Parameters=kept
        )
        waiter = cloudformation.get_waiter("stack_update_complete")
        waiter.wait(StackName=stack.name, WaiterConfig={"Delay": 1, "MaxAttempts": 300})


@contextmanager
def _uploaded(stack: Stack, template: bytes) -> Iterator[str]:
    """Keep a template in a bucket for a block; its URL."""
    s3, region = stack.account.client("s3"), stack.account.session.region_name
    bucket, key = f"{stack.name}-mutant-{secrets.token_hex(8)}", "template.json"
    s3.create_bucket(
        Bucket=bucket,
        **({} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}),
    )
    try:
        s3.put_object(Bucket=bucket, Key=key, Body=template)
        yield f"https://s3.{region}.amazonaws.com/{bucket}/{key}"
    finally:
        s3.delete_object(Bucket=bucket, Key=key)
        s3.delete_bucket(Bucket=bucket)
