"""Which functions ran for an HTTP request: the front door, and the function that it invoked."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_functions.local.lambdas.service import Outcome

MAX_EXECUTIONS = 1000  # that are kept


class ExecutionLog:
    """The last executions, each with API Gateway's id of its request."""

    def __init__(self) -> None:
        """Start empty."""
        self._executions: deque[tuple[object, dict[str, Any]]] = deque(maxlen=MAX_EXECUTIONS)

    def of(self, request_id: str) -> list[dict[str, Any]]:
        """Return the executions for a request, in the order in which they ended."""
        return [execution for id_, execution in list(self._executions) if id_ == request_id]

    def add(self, folder: str, event: bytes, outcome: Outcome) -> None:
        """Take a call that has ended. The front door forwards API Gateway's id; the event of a worker has none."""
        match json.loads(event):
            case {"requestContext": {"requestId": str(request_id)}}:
                execution = {
                    "folder": folder,
                    "requestId": outcome.request_id,
                    "milliseconds": round(outcome.milliseconds, 1),
                    "error": outcome.error,
                    "initMilliseconds": outcome.init_milliseconds,
                    "memoryMb": outcome.memory_mb,
                }
                self._executions.append((request_id, execution))
