"""Checks of what a function may use: the KMS key, the table and the bucket, each under the function's own name."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mcp_functions.local.checks.statements import (
    may_keep_as,
    may_seal_as,
    may_store_as,
    resources,
    statements,
    touches,
    without_resource,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_functions.local.checks.project import Block, Project

TABLE = {"Ref": "Table"}
TABLE_PROPERTIES = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
    "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
}
KEY_ARN = re.compile(r"arn:(aws[a-z-]*|\$\{AWS::Partition\}):kms:[^*?]+:key/[\w-]+")  # one key: no pattern, no alias
PRINT_BLOCK = "the whole block is printed by: python -m mcp_functions.local block"
# Clients still hold the states of a function that asked until now, so it must open them for one more lifetime.
STOPPED = " (if it asked until now: keep `elicit: Elicit` in its signature, unused, for one answer_within)"


def a_function_may_seal_if_and_only_if_it_can_ask(project: Project) -> Iterator[str]:
    """Check that only functions that ask may use the key, each under its own name. The endpoint may use it too."""
    for folder, block in sorted(project.functions.items()):
        sealing = [statement for statement in statements(block.properties) if touches(statement, "kms")]
        keys = block.variable("MCP_KMS_KEYS")
        uses_key = bool(sealing) or keys is not None
        if folder in project.asking or (uses_key and folder in project.endpoint_folders):
            yield from _seals(folder, block.logical_id, sealing, keys)
            continue
        if sealing:
            yield f"functions/{folder} never asks: {block.logical_id} must have no permission for KMS{STOPPED}"
        if keys is not None:
            yield f"functions/{folder} never asks: {block.logical_id} must have no MCP_KMS_KEYS{STOPPED}"


def _seals(folder: str, logical_id: str, sealing: list[dict[str, Any]], keys: object) -> Iterator[str]:
    expected = may_seal_as(folder)
    allowed = [key for statement in sealing for key in resources(statement)]
    patterns = [key for key in allowed if not _is_a_key(key)]
    if not sealing or any(without_resource(one) != without_resource(expected) for one in sealing):
        yield f"functions/{folder} asks: {logical_id} needs exactly this statement: {json.dumps(expected)}"
    elif patterns:
        yield f"functions/{folder} asks: {logical_id} may use more than your own keys: {patterns[0]}"
    usable = allowed if sealing else [expected["Resource"]]
    if not any(key in usable for key in _listed_keys(keys)):
        yield f"functions/{folder} asks: {logical_id} needs MCP_KMS_KEYS: !GetAtt RequestStateKey.Arn"


def a_function_has_the_table_if_and_only_if_it_keeps_something(project: Project) -> Iterator[str]:
    """Check that only functions that keep something may use the table, each its own items.

    The endpoint may use the table too: it keeps its questions to clients of 2025 there.
    """
    for folder, block in sorted(project.functions.items()):
        keeping = [statement for statement in statements(block.properties) if touches(statement, "dynamodb")]
        table = block.variable("MCP_TABLE")
        uses_table = bool(keeping) or table is not None
        if folder in project.keeping or (uses_table and folder in project.endpoint_folders):
            start, expected = f"functions/{folder} keeps something: {block.logical_id} needs", may_keep_as(folder)
            if keeping != [expected]:
                kind = "task" if folder in project.tasks else "single_use"
                yield f"{start} exactly this statement: {json.dumps(expected)}; {PRINT_BLOCK} {kind} {folder}"
            if table != TABLE:
                yield f"{start} MCP_TABLE: !Ref Table"
        elif uses_table:
            needless = f"{block.logical_id} must have no MCP_TABLE, nor permission for DynamoDB"
            yield f"functions/{folder} keeps nothing: {needless}"


def the_table_keeps_what_is_written_and_deletes_what_has_expired(project: Project) -> Iterator[str]:
    """Check that the table has the toolkit's key and expiry, is billed by use, and outlives the stack."""
    if not project.keeping:
        return
    table = project.of_type("AWS::DynamoDB::Table").get(TABLE["Ref"])
    if table is None:
        yield "functions keep something: template.yaml needs a Table of type AWS::DynamoDB::Table"
        return
    for name, expected in TABLE_PROPERTIES.items():
        if table.get(name) != expected:
            yield f"Table must have {name}: {json.dumps(expected)}"
    resource = project.template["Resources"][TABLE["Ref"]]
    survives_deletion = str(resource.get("DeletionPolicy")).startswith("Retain")
    if not survives_deletion or resource.get("UpdateReplacePolicy") != "Retain":
        yield "Table must have DeletionPolicy and UpdateReplacePolicy Retain: without it a round could run again"


def a_function_may_use_the_bucket_if_it_has_one(project: Project) -> Iterator[str]:
    """Check that only functions that keep something have the bucket, and reach their own objects only."""
    for folder, block in sorted({**project.functions, **project.workers}.items()):
        bucket = block.variable("MCP_BLOBS")
        if bucket is None:
            continue
        expected = may_store_as(folder, bucket)
        if folder not in project.keeping | project.endpoint_folders:
            yield f"functions/{folder} keeps nothing: {block.logical_id} must have no MCP_BLOBS"
        elif expected not in _statements_with_bucket(block):
            needed = f"it needs exactly this statement, !If HasBlobs: {json.dumps(expected)}"
            yield f"{block.logical_id} has MCP_BLOBS, so {needed}"


def _statements_with_bucket(block: Block) -> list[Any]:
    """List the statements that a function has only if the deployment has a bucket."""
    branches = [statement.get("Fn::If", []) for statement in statements(block.properties)]
    return [branch[1] for branch in branches if branch[:1] == ["HasBlobs"]]


def _is_a_key(resource: object) -> bool:
    match resource:
        case {"Fn::GetAtt": str(name)}:
            return name.endswith(".Arn")
        case {"Ref": str()}:
            return True
        case str(arn) | {"Fn::Sub": str(arn)}:
            return KEY_ARN.fullmatch(arn) is not None
    return False


def _listed_keys(variable: object) -> list[Any]:
    """List the keys of MCP_KMS_KEYS: usually one, and several while one is rotated."""
    match variable:
        case {"Fn::Join": [",", list(keys)]}:
            return keys
        case {"Fn::Sub": str(text)}:
            return [{"Fn::GetAtt": attribute} for attribute in re.findall(r"\$\{(\w+\.Arn)\}", text)]
    return [variable]
