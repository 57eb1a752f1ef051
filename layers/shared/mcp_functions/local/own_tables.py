"""The tables of DynamoDB that template.yaml declares for an author's functions, as requests of CreateTable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.local import environment, template
from mcp_functions.local.runtime import configuration
from mcp_functions.local.runtime.intrinsics import Resolver, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

TOOLKITS = "Table"  # its logical id
COPIED = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")


def of_project(directory: Path, *, name: str = f"{environment.STACK}-{{}}") -> list[dict[str, Any]]:
    """Return a request for each table; a table whose properties only a deployment knows is left out.

    Args:
        directory: of the functions; the template is in its parent.
        name: of a table, with {} for its logical id.

    Raises:
        Problem: the template cannot be read.
    """
    path = configuration.find(directory)
    return list(_requests(template.read(path), name)) if path else []


def _requests(read: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    resolver = Resolver(read, stack=environment.STACK, key_arn="")
    for logical_id, resource in read["Resources"].items():
        schema = _schema(str(resource.get("Type")), resource.get("Properties") or {})
        if logical_id == TOOLKITS or not schema:
            continue
        named = resource.get("Properties", {}).get("TableName", name.format(logical_id))
        try:
            resolved: Any = resolver.value({"TableName": named, "BillingMode": "PAY_PER_REQUEST", **schema})
        except Unknown:
            continue
        yield resolved


def _schema(kind: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys and indexes of a table; nothing, if the resource is no table."""
    if kind == "AWS::DynamoDB::Table":
        return {name: properties[name] for name in COPIED if name in properties}
    if kind == "AWS::Serverless::SimpleTable":
        key = properties.get("PrimaryKey", {"Name": "id", "Type": "String"})
        return {
            "AttributeDefinitions": [{"AttributeName": key["Name"], "AttributeType": key["Type"][0]}],
            "KeySchema": [{"AttributeName": key["Name"], "KeyType": "HASH"}],
        }
    return {}
