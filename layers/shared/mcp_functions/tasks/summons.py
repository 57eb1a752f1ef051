"""A worker is summoned: the same function once more, asynchronously, with the time that a task takes.

Nothing depends on one summons: it may be lost, or come twice. The lease in the item decides who works, and the next
poll summons again.
"""

from __future__ import annotations

import json
import logging
import os
from typing import TYPE_CHECKING, Any

from mcp_functions import aws
from mcp_functions.seal.process_resets import register_reset

if TYPE_CHECKING:
    from collections.abc import Callable

CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 1, 2, 2

log = logging.getLogger("mcp_functions")


class Summons:
    """Calls the worker of one function."""

    def __init__(self, worker: str, client: Callable[[], Any]) -> None:
        """Remember whom to call.

        Args:
            worker: the physical name of the worker's Lambda, with a qualifier if there is one (":live").
            client: makes boto3's client, at the first call.

        """
        self._worker, self._make_client = worker, client
        self._client: Any = None
        register_reset(self)

    def reset(self) -> None:
        """Forget the client: its connections and credentials belong to the process that made them."""
        self._client = None

    def __call__(self, task_id: str, owner: str | None) -> None:
        """Call a worker for a task; whether that came through, the lease will tell."""
        order = json.dumps({"mcpTask": {"id": task_id, "owner": owner}}).encode()
        try:
            client = self._client = self._client or self._make_client()
            client.invoke(FunctionName=self._worker, InvocationType="Event", Payload=order)
        except Exception as error:  # noqa: BLE001 - botocore makes its exceptions at run time
            code = (getattr(error, "response", None) or {}).get("Error", {}).get("Code", "") or type(error).__name__
            log.error("no worker: invoke_%s", code)  # noqa: TRY400 - no traceback


def lambda_client() -> Any:  # noqa: ANN401 - boto3's clients have no type of their own
    """Make the client that summons; a summons may come twice, so it is sent again when nobody answered."""
    target = aws.find(os.environ, "lambda")
    if target is None:
        return boto3_client()
    from mcp_functions.aws.clients import Invoker  # noqa: PLC0415 - imported at init

    return Invoker(target, connect_seconds=CONNECT_SECONDS, read_seconds=READ_SECONDS, attempts=ATTEMPTS)


def boto3_client() -> Any:  # noqa: ANN401 - see lambda_client
    """Make boto3's, where the environment does not say all that our own needs."""
    from mcp_functions.aws import by_boto3  # noqa: PLC0415 - only where there are tasks

    return by_boto3.client("lambda", connect_seconds=CONNECT_SECONDS, read_seconds=READ_SECONDS, attempts=ATTEMPTS)
