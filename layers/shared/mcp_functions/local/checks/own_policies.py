"""Checks of the policies that an author gives to a function: they may open anything but what functions share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcp_functions.local.checks.statements import (
    KEEP,
    MAY_SEAL,
    SEAL,
    is_opened,
    names,
    own_statements,
    policies,
    resources,
    shown,
    touches,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.checks.project import Block, Project

# service -> the logical id of what only the two policies open, and how the end of its ARN looks
SHARED = {
    "kms": ("RequestStateKey", "key/1234abcd-12ab-34cd-56ef-1234567890ab"),
    "dynamodb": ("Table", "table/STACK-Table-1A2B3C4D5E6F"),
}
# AWS's own policies that open every table, or invoke every function, of the account.
BROAD = frozenset(
    {
        "AWSLambdaRole",
        "AWSLambda_FullAccess",
        "AdministratorAccess",
        "AmazonDynamoDBFullAccess",
        "AmazonDynamoDBFullAccess_v2",
        "PowerUserAccess",
    }
)


def a_function_reaches_the_key_and_the_table_by_these_policies_only(project: Project) -> Iterator[str]:
    """Check a function's own policies: none may open the toolkit's key or table, which other functions use too."""
    ours = {"RequestStateKey", "Table", "Blobs"} | {block.logical_id for block in project.functions.values()}
    for block in [*project.functions.values(), *project.workers.values()]:
        if "Role" in block.properties:
            yield f"{block.logical_id} must have no Role: SAM then ignores its Tags and Policies; write Policies"
        for statement in own_statements(block.properties):
            yield from _reaches(block, statement)
        for policy in policies(block.properties):
            for name, opened in _ready_made(policy):
                if name in BROAD or opened in ours:
                    yield f"{block.logical_id} may not have {name} on {opened or '*'}: name a resource of your own"


def _reaches(block: Block, statement: dict[str, Any]) -> Iterator[str]:
    if _is_for_an_audience(statement):
        return
    for service, (logical_id, example) in SHARED.items():
        opened = [one for one in resources(statement) if is_opened(one, logical_id, example)]
        if opened and touches(statement, service):
            yield (
                f"{block.logical_id} may use {service} on {shown(opened[0])}, beyond its own name:"
                f" name a resource of your own, or !Ref {SEAL if service == 'kms' else KEEP}"
            )


def _is_for_an_audience(statement: dict[str, Any]) -> bool:
    """Whether a statement opens states under a name that functions share, which is the name of none."""
    context = statement.get("Condition", {}).get("StringEquals", {})
    audience = context.get("kms:EncryptionContext:service")
    own = {**MAY_SEAL["Condition"]["StringEquals"], "kms:EncryptionContext:service": audience}
    is_name = isinstance(audience, str) and re.fullmatch(r"[\w-]+", audience) is not None
    return is_name and statement == {**MAY_SEAL, "Condition": {**MAY_SEAL["Condition"], "StringEquals": own}}


def _ready_made(policy: object) -> Iterator[tuple[str, str]]:
    """List the policies of AWS, by the end of their ARN, and SAM's policy templates with what each opens."""
    match policy:
        case str(arn) | {"Fn::Sub": str(arn)}:
            yield arn.rpartition("/")[2], ""
        case {"Fn::If": [_, yes, no]}:
            yield from _ready_made(yes)
            yield from _ready_made(no)
        case {**template} if not template.keys() & {"Ref", "Statement"}:
            for name, parameters in template.items():
                given = list(parameters.values()) if isinstance(parameters, dict) else []
                yield from ((str(name), names(value)) for value in given)
