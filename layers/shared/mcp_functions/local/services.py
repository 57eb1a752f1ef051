"""AWS's services for one harness: KMS, DynamoDB with the author's tables, and S3 where a bucket is named."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

from mcp_functions.local import environment, template
from mcp_functions.local.doubles import dynamodb, keyfile, kms, s3
from mcp_functions.local.doubles.tablefile import StoredTable, TableFile
from mcp_functions.local.loopback import started
from mcp_functions.local.runtime.intrinsics import Resolver, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import ExitStack
    from pathlib import Path

    from mcp_functions.local.environment import Variables

OWN_TABLE = "Table"  # the logical id of the toolkit's own table
SCHEMA_PROPERTIES = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")


def start(starting: ExitStack, state_dir: Path, directory: Path, invoke_url: str) -> tuple[str, Variables]:
    """Start KMS, DynamoDB, and S3 if the shell's MCP_BLOBS names a bucket.

    Args:
        starting: stops them when it is closed.
        state_dir: keeps the KMS key and the table between runs.
        directory: the folder of the functions; the template beside it declares the author's tables.
        invoke_url: the URL of Lambda's Invoke API.

    Returns:
        The ARN of the KMS key, and the variables that send AWS clients to these services and to the Invoke API.
    """
    kms_api = kms.KmsApi(keyfile.load(state_dir))
    kms_api.warm()  # functions wait for a shorter time than moto needs for its first answer
    tables = stored_tables(starting, state_dir, own_tables(directory))
    bucket = os.environ.get("MCP_BLOBS")
    s3_api = s3.S3Api(bucket, s3.MemoryBucket()) if bucket else None
    return kms_api.arn, environment.endpoints(
        kms=started(starting, kms_api.answer, kms.MAX_REQUEST),
        invoke=invoke_url,
        dynamodb=started(starting, tables.answer, dynamodb.MAX_REQUEST),
        s3=started(starting, s3_api.answer, s3.MAX_OBJECT) if s3_api else None,
    )


def stored_tables(starting: ExitStack, state_dir: Path, author_tables: list[dict[str, Any]]) -> dynamodb.DynamoDbApi:
    """Return DynamoDB with the toolkit's table, which a file in `state_dir` keeps, and with the author's tables."""
    file = starting.enter_context(contextlib.closing(TableFile(state_dir, now=time.time())))
    tables = dynamodb.Moto(dynamodb.table(environment.TABLE), *author_tables)
    return dynamodb.DynamoDbApi(StoredTable(file, environment.TABLE, tables))


def own_tables(directory: Path, *, name: str = f"{environment.STACK}-{{}}") -> list[dict[str, Any]]:
    """Return the tables that template.yaml declares for an author's functions, as requests of CreateTable.

    A table whose properties only a deployment knows is left out.

    Args:
        directory: the folder of the functions; the template is in its parent.
        name: the form of a table's name, with {} for its logical id.

    Raises:
        Problem: the template cannot be read.
    """
    path = template.find(directory)
    if path is None:
        return []
    return list(_requests(template.read(path), name))


def _requests(parsed: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    resolver = Resolver(parsed, stack=environment.STACK, key_arn="")
    for logical_id, resource in parsed["Resources"].items():
        schema = _schema(str(resource.get("Type")), resource.get("Properties") or {})
        if logical_id == OWN_TABLE or not schema:
            continue
        table_name = resource.get("Properties", {}).get("TableName", name.format(logical_id))
        try:
            resolved: Any = resolver.value({"TableName": table_name, "BillingMode": "PAY_PER_REQUEST", **schema})
        except Unknown:
            continue
        yield resolved


def _schema(kind: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys and indexes of a table; {} if the resource is no table."""
    if kind == "AWS::DynamoDB::Table":
        return {name: properties[name] for name in SCHEMA_PROPERTIES if name in properties}
    if kind == "AWS::Serverless::SimpleTable":
        key = properties.get("PrimaryKey", {"Name": "id", "Type": "String"})
        return {
            # SAM names types by a word, DynamoDB by its first letter
            "AttributeDefinitions": [{"AttributeName": key["Name"], "AttributeType": key["Type"][0]}],
            "KeySchema": [{"AttributeName": key["Name"], "KeyType": "HASH"}],
        }
    return {}
