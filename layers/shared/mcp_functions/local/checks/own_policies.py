"""Checks the policies that an author gives to a function: they may open anything but what all functions share.

Shared are the KMS key, the table, the bucket, the functions and their roles. A policy that reaches one of them would
let a function read what belongs to another. A policy may name them by a logical id, or by an ARN with wildcards. So
wildcards are tried on examples of ARNs, in which STACK is the stack's name.
"""

from __future__ import annotations

import re
from copy import deepcopy
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from mcp_functions.local.checks import iam

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.checks.project import Block, Project

# service -> the logical id of what only MaySeal and MayKeep open, and an example of the end of its ARN
SHARED = {
    "kms": ("RequestStateKey", "key/1234abcd-12ab-34cd-56ef-1234567890ab"),
    "dynamodb": ("Table", "table/STACK-Table-1A2B3C4D5E6F"),
    "s3": ("Blobs", ""),
}
FUNCTION = "function:STACK_name"
# the beginning of a SAM policy template's name -> the ARN that it opens for a value {}, and an example of a shared one
READY_MADE = {
    "DynamoDB": ("table/{}", SHARED["dynamodb"][1]),
    "KMS": ("key/{}", SHARED["kms"][1]),
    "Lambda": ("function:{}*", FUNCTION),
}
# A function that may change roles could give itself another tag or policy, and so open what other functions keep.
ROLE = "role/STACK-AddRole-1A2B3C4D5E6F"
CHANGES_OF_ROLES = ("iam:TagRole", "iam:PutRolePolicy", "iam:AttachRolePolicy")
AUDIENCE = "kms:EncryptionContext:service"  # the condition key with the name for which the KMS key encrypts
# AWS's own policies that open every table, or invoke every function, of the account.
BROAD = frozenset({
    "AWSLambdaRole", "AWSLambda_FullAccess", "AdministratorAccess", "AmazonDynamoDBFullAccess",
    "AmazonDynamoDBFullAccess_v2", "IAMFullAccess", "PowerUserAccess",
})  # fmt: skip


def a_function_reaches_the_key_and_the_table_by_these_policies_only(project: Project) -> Iterator[str]:
    """Check a function's own policies: none may open the toolkit's key or table, which other functions use too."""
    shared_ids = {logical_id for logical_id, _example in SHARED.values()}
    own_ids = shared_ids | {block.logical_id for block in project.functions.values()}
    for block in project.blocks:
        if "Role" in block.properties:
            yield f"{block.logical_id} must have no Role: SAM then ignores its Tags and Policies; write Policies"
        for statement in project.statements(block):
            yield from _complaints_about(block, statement)
        for policy in iam.policies(block.properties):
            if policy == iam.MAY_INVOKE and block == project.front_door:
                continue
            for name, value in _ready_made(policy):
                if name in BROAD or iam.resource_name(value) in own_ids or _opens_shared_resource(name, value):
                    text = iam.resource_text(value)
                    yield f"{block.logical_id} may not have {name} on {text}: name a resource of your own"


def nobody_else_may_invoke_a_function(project: Project) -> Iterator[str]:
    """Check that only the API and the endpoint may invoke a function: who invokes one can claim any identity."""
    function_ids = {block.logical_id for block in project.functions.values()}
    for block in project.blocks:
        if block == project.front_door:
            continue
        for statement in project.statements(block):
            functions = [resource for resource in iam.resources(statement) if _is_function(resource, function_ids)]
            if functions and iam.has_action_of(statement, "lambda"):
                text = iam.resource_text(functions[0])
                yield f"{block.logical_id} may use lambda on {text}: it could call a function as any user"
    for name, permission in project.of_type("AWS::Lambda::Permission").items():
        if iam.resource_name(permission.get("FunctionName")) in function_ids:
            yield f"{name} lets others than the API and the endpoint invoke a function: they could claim any identity"


def _is_function(resource: object, function_ids: set[str]) -> bool:
    text = iam.resource_text(resource)
    return text in function_ids or "${AWS::StackName}_" in text or iam.includes(resource, "", FUNCTION)


def _opens_shared_resource(name: str, value: object) -> bool:
    """Whether a SAM policy template with this value opens something that functions share."""
    text = iam.arn_pattern(value)
    if name == "LambdaInvokePolicy" and text.startswith("STACK_"):
        return True
    for begin, (form, example) in READY_MADE.items():
        if name.startswith(begin) and fnmatchcase(example, form.format(text)):
            return True
    return False


def _complaints_about(block: Block, statement: dict[str, Any]) -> Iterator[str]:
    """Complain if a statement reaches roles, or the key, the table or the bucket."""
    roles = [resource for resource in iam.resources(statement) if iam.includes(resource, "", ROLE)]
    if roles and any(_allows(statement, action) for action in CHANGES_OF_ROLES):
        text = iam.resource_text(roles[0])
        yield f"{block.logical_id} may use iam on {text}: it could open what other functions keep"
    if _is_for_an_audience(statement):
        return
    for service, (logical_id, example) in SHARED.items():
        reached = [resource for resource in iam.resources(statement) if iam.includes(resource, logical_id, example)]
        if reached and iam.has_action_of(statement, service):
            text = iam.resource_text(reached[0])
            policy = iam.SEAL if service == "kms" else iam.KEEP
            yield (
                f"{block.logical_id} may use {service} on {text}, beyond its own name:"
                f" name a resource of your own, or !Ref {policy}"
            )


def _allows(statement: dict[str, Any], action: str) -> bool:
    """Whether a statement allows an action of IAM."""
    excludes = "NotAction" in statement
    patterns = iam.as_list(statement["NotAction"]) if excludes else iam.actions(statement)
    is_matched = any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)
    return not is_matched if excludes else is_matched


def _is_for_an_audience(statement: dict[str, Any]) -> bool:
    """Whether a statement is MaySeal's, but for an audience: a name under which several functions share their states.

    No function has the audience's name, so the statement opens nothing that belongs to one function alone.
    """
    audience = statement.get("Condition", {}).get("StringEquals", {}).get(AUDIENCE)
    if not isinstance(audience, str) or not re.fullmatch(r"[\w-]+", audience):
        return False
    (allowed,) = deepcopy(iam.written_statements(iam.SEAL))
    allowed["Condition"]["StringEquals"][AUDIENCE] = audience
    return bool(statement == allowed)


def _ready_made(policy: object) -> Iterator[tuple[str, object]]:
    """List the policies of AWS, by the end of their ARN, and SAM's policy templates with what each opens."""
    match policy:
        case str(arn) | {"Fn::Sub": str(arn)}:
            yield arn.rpartition("/")[2], "*"
        case {"Fn::If": [_, yes, no]}:
            yield from _ready_made(yes)
            yield from _ready_made(no)
        case {**template} if not template.keys() & {"Ref", "Statement"}:
            for name, parameters in template.items():
                if isinstance(parameters, dict):
                    for value in parameters.values():
                        yield str(name), value
