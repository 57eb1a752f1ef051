"""A deployment around functions under test: its environment variables, and doubles of AWS's services on loopback.

A double is a small HTTP server in this process. The functions call it as they call AWS.
"""

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

from mcp_functions.http.events import WORKER_ORDER
from mcp_functions.protocol.event_types import Event
from mcp_functions.store import Bucket
from mcp_functions_harness import environment, services, template
from mcp_functions_harness.doubles import dynamodb, keyfile, s3
from mcp_functions_harness.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions_harness.doubles.own_services import OwnServices
from mcp_functions_harness.environment import Variables
from mcp_functions_harness.lambdas import invoke_api
from mcp_functions_harness.lambdas.functions import find
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, json_response, start_server
from mcp_functions_harness.runtime.configuration import Configurations
from mcp_functions_harness.testing.dynamodb import MemoryTable

MAX_INVOCATION = 64 * 1024  # bytes; the invocation of a worker has a task's id and little more
# A worker is a Lambda that continues MCP tasks. Its invocations (name, payload) wait here until a conversation polls.
_pending_invocations: deque[tuple[str, bytes]] = deque()


@contextmanager
def deployed(
    table: dynamodb.Operate | None = None, bucket: Bucket | None = None, /, **changes: str | None
) -> Iterator[None]:
    """Give functions the environment of a deployment: the template's variables, and KMS, a table and S3 on loopback.

    Each deployment has a key of its own, so a state of one is not valid in another. They may be nested.

    Args:
        table: answers DynamoDB's operations, as a `MemoryTable` does, whose faults the test decides. If it is left out,
            a test can create more tables with boto3.
        bucket: stores what does not fit into an item of the table, if MCP_BLOBS is among the changes.
        changes: variables with other values, as in `MCP_AUTH_MODE="jwt"`; None removes a variable.
    """
    with ExitStack() as stack:
        s3_api = s3.S3Api(changes.get("MCP_BLOBS") or "blobs", bucket or s3.MemoryBucket())
        own = OwnServices([])
        variables = _start(stack, table or _Tables([]), services.with_toolkits_bucket(own, s3_api))
        with environment.applied(variables | changes):
            yield


@contextmanager
def deployed_project(functions: Path) -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Deploy with what template.yaml declares: variables, and tables, buckets, queues and secrets.

    A function may keep a client for all tests, so the addresses stay until the end of the block. What the block gets
    makes the context of one test, in which all of it is empty.

    Raises:
        Problem: the template cannot be read.
    """
    with ExitStack() as stack:
        parsed = template.beside(functions)
        tables = _Tables(services.author_tables(parsed))
        own = OwnServices(services.author_resources(parsed))
        s3_api = s3.S3Api("blobs", s3.MemoryBucket())
        variables = _start(stack, tables, services.with_toolkits_bucket(own, s3_api))
        variables = _of_template(functions, variables) | variables

        def for_one_test() -> AbstractContextManager[None]:
            tables.reset()
            own.reset()
            return environment.applied(variables)

        yield for_one_test


def _start(
    stack: ExitStack, tables: dynamodb.Operate, own: Callable[[HttpRequest], HttpResponse]
) -> environment.Variables:
    """Start the services of AWS, and return the variables of functions."""
    kms = KmsApi(keyfile.load(Path(stack.enter_context(TemporaryDirectory()))))
    endpoints = environment.endpoints(
        kms=start_server(stack, kms.answer, MAX_REQUEST),
        invoke=start_server(stack, _queue_invocation, MAX_INVOCATION),
        dynamodb=start_server(stack, dynamodb.DynamoDbApi(tables).answer, dynamodb.MAX_REQUEST),
        own=start_server(stack, own, s3.MAX_OBJECT),
    )
    settings = environment.settings(port=80, name="tested", key_arn=kms.arn)
    return environment.CREDENTIALS | settings | endpoints


def _of_template(functions: Path, variables: Variables) -> Variables:
    """Return the variables that the template gives to functions, such as the names of their resources."""
    configurations = Configurations.beside(functions, variables, dict(os.environ))
    merged: Variables = {}
    if configurations:
        for own in configurations.own_variables(functions, [app.parent.name for app in find(functions)])[0].values():
            merged |= own
    return merged


class _Tables:
    """The toolkit's table in memory, and the library moto for tables that a test creates."""

    def __init__(self, tables: list[dynamodb.TableParameters]) -> None:
        """Start with the toolkit's table, and with others by the parameters of `CreateTable`."""
        self._tables = tables
        self.reset()

    def reset(self) -> None:
        """Begin again, with empty tables."""
        self._toolkits_table = MemoryTable(environment.TABLE)
        self._moto = cache(lambda: dynamodb.Moto(*self._tables))  # made late: moto imports slowly

    def __call__(self, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer one request; an error is a ClientError with AWS's code."""
        if request.get("TableName") == environment.TABLE:
            return self._toolkits_table(operation, request)
        return self._moto()(operation, request)


def _queue_invocation(request: HttpRequest) -> HttpResponse:
    """Queue an asynchronous invocation of a worker, which runs when a conversation polls."""
    path = invoke_api.PATH.fullmatch(request.target)
    if path and request.header("x-amz-invocation-type") == "Event":
        name = unquote(path[1]).partition(":")[0]  # without the version or alias
        _pending_invocations.append((name, request.body or b"{}"))
        return HttpResponse(202)
    error = ("x-amzn-errortype", "ResourceNotFoundException")
    return json_response(404, {"Message": "only workers are called here"}, error)


def take_invocations(worker: str, task_id: str | None = None) -> Iterator[Event]:
    """Remove and yield the queued events of one worker, also those that it queues while it answers one.

    The events are of one task, because another test may have left a task that it did not poll; None: of all tasks.
    """

    def is_due(invocation: tuple[str, bytes]) -> bool:
        name, payload = invocation
        return name == worker and (task_id is None or json.loads(payload)[WORKER_ORDER]["id"] == task_id)

    while invocation := next(filter(is_due, _pending_invocations), None):
        _pending_invocations.remove(invocation)
        yield json.loads(invocation[1])
