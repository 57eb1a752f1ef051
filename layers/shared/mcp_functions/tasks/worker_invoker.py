"""Invokes a worker: a second Lambda function with the same code, and the time that a task needs.

The invocation is asynchronous, so Lambda may lose or repeat it. If it is lost, a later poll of the client invokes
another worker. If it is repeated, the lease of the task lets only one worker run.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from mcp_functions import aws
from mcp_functions.aws.errors import read_failure
from mcp_functions.http.events import WORKER_ORDER
from mcp_functions.seal.resets import PerProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.aws.clients import LambdaClient

LIMITS = aws.CallLimits(connect_seconds=1, read_seconds=2, attempts=2)  # a second worker of a task does no harm

log = logging.getLogger("mcp_functions")


class WorkerInvoker:
    """Invokes the workers of one function."""

    def __init__(self, worker: str, make_client: Callable[[], Any]) -> None:
        """Use the physical name of the worker's Lambda, with its qualifier; no client is made before the first call."""
        self._worker = worker
        self._client = PerProcess(make_client)

    def __call__(self, task_id: str, owner: str | None) -> None:
        """Invoke a worker for a task and the digest of its owner; a failure is only logged."""
        order = json.dumps({WORKER_ORDER: {"id": task_id, "owner": owner}}).encode()
        try:
            self._client().invoke(FunctionName=self._worker, InvocationType="Event", Payload=order)
        except Exception as error:  # noqa: BLE001 - botocore makes its exceptions at run time
            # Only the code is logged, because a traceback could quote the request.
            log.log(logging.ERROR, "no worker: invoke_%s", read_failure(error).code)


def lambda_client() -> LambdaClient:
    """Return the client that invokes workers; it repeats a request without a response."""
    client: LambdaClient = aws.make_client("lambda", LIMITS)
    return client
