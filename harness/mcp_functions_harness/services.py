"""Starts the copies of AWS's services for a harness.

KMS         with the project's key
DynamoDB    with the toolkit's table, and with the tables that template.yaml declares for an author's functions
S3, SQS, Secrets Manager    with what template.yaml declares; S3 has the toolkit's bucket too, if MCP_BLOBS names one
"""

import contextlib
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from mcp_functions.protocol.wire_types import JSONObject
from mcp_functions_harness import environment, template
from mcp_functions_harness.doubles import dynamodb, keyfile, kms, s3
from mcp_functions_harness.doubles.dynamodb import TableParameters
from mcp_functions_harness.doubles.own_services import TYPES, OwnResource, OwnServices
from mcp_functions_harness.doubles.tablefile import StoredTable, TableFile
from mcp_functions_harness.environment import Variables
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, start_server
from mcp_functions_harness.runtime.intrinsics import Resolver, Unknown
from mcp_functions_harness.template import Resource, Template

TOOLKIT_TABLE, TOOLKIT_BUCKET = "Table", "Blobs"  # the logical ids of what the toolkit keeps
# The properties of AWS::DynamoDB::Table that CreateTable takes as they are.
SCHEMA_PROPERTIES = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")


def start(starting: ExitStack, state_dir: Path, directory: Path, invoke_url: str) -> tuple[str, Variables]:
    """Start the services, until `starting` is closed; `state_dir` keeps the KMS key and the table between runs.

    Returns:
        The ARN of the KMS key, and the variables that send AWS clients to these services and to the Invoke API.
    """
    kms_api = kms.KmsApi(keyfile.load(state_dir))
    kms_api.warm()  # moto's first answer takes longer than a function waits
    kms_url = start_server(starting, kms_api.answer, kms.MAX_REQUEST)
    parsed = template.beside(directory)
    tables = stored_tables(starting, state_dir, author_tables(parsed))
    dynamodb_url = start_server(starting, tables.answer, dynamodb.MAX_REQUEST)
    toolkits_bucket = s3.S3Api(os.environ.get("MCP_BLOBS") or "", s3.MemoryBucket())
    own = OwnServices(author_resources(parsed))
    own_url = start_server(starting, with_toolkits_bucket(own, toolkits_bucket), s3.MAX_OBJECT)
    return kms_api.arn, environment.endpoints(kms=kms_url, invoke=invoke_url, dynamodb=dynamodb_url, own=own_url)


def with_toolkits_bucket(own: OwnServices, bucket: s3.S3Api) -> Callable[[HttpRequest], HttpResponse]:
    """Return what answers requests for an author's services, and those for the toolkit's bucket."""
    return lambda request: (bucket if bucket.has(request) else own).answer(request)


def stored_tables(starting: ExitStack, state_dir: Path, more_tables: list[TableParameters]) -> dynamodb.DynamoDbApi:
    """Return DynamoDB with the toolkit's table, which a file in `state_dir` keeps, and more tables in memory."""
    file = starting.enter_context(contextlib.closing(TableFile(state_dir, now=time.time())))
    tables = dynamodb.Moto(dynamodb.table(environment.TABLE), *more_tables)
    return dynamodb.DynamoDbApi(StoredTable(file, environment.TABLE, tables))


def author_tables(parsed: Template | None, *, name_format: str = f"{environment.STACK}-{{}}") -> list[TableParameters]:
    """Return each table that a template, if there is one, declares for an author's functions.

    `name_format` makes the name of a table without TableName, with {} for its logical id.
    """
    tables: list[TableParameters] = []
    if parsed is None:
        return tables
    resolver = Resolver(parsed)
    for logical_id, resource in parsed["Resources"].items():
        schema = _schema(resource)
        if logical_id == TOOLKIT_TABLE or not schema:
            continue
        name = resource["Properties"].get("TableName", name_format.format(logical_id))
        with contextlib.suppress(Unknown):  # left out if only a deployment knows its properties
            parameters = {"TableName": name, "BillingMode": "PAY_PER_REQUEST", **schema}
            tables.append(resolver.value(parameters))
    return tables


def author_resources(parsed: Template | None) -> list[OwnResource]:
    """Return the buckets, queues and secrets that a template, if there is one, declares."""
    found: list[OwnResource] = []
    if parsed is None:
        return found
    resolver = Resolver(parsed)
    for logical_id, resource in parsed["Resources"].items():
        if resource["Type"] in TYPES and logical_id != TOOLKIT_BUCKET:
            properties: JSONObject = {}  # stays empty if only a deployment knows them
            with contextlib.suppress(Unknown):
                properties = resolver.value(resource["Properties"])
            with contextlib.suppress(Unknown):
                found.append(OwnResource(resource["Type"], str(resolver.name(logical_id)), properties))
    return found


def _schema(resource: Resource) -> JSONObject:
    """Return the keys and indexes of a table as CreateTable takes them; {} if the resource is no table."""
    properties = resource["Properties"]
    if resource["Type"] == "AWS::DynamoDB::Table":
        return {name: properties[name] for name in SCHEMA_PROPERTIES if name in properties}
    if resource["Type"] == "AWS::Serverless::SimpleTable":
        key = properties.get("PrimaryKey", {"Name": "id", "Type": "String"})
        return {
            # SAM names types by a word, DynamoDB by its first letter.
            "AttributeDefinitions": [{"AttributeName": key["Name"], "AttributeType": key["Type"][0]}],
            "KeySchema": [{"AttributeName": key["Name"], "KeyType": "HASH"}],
        }
    return {}
