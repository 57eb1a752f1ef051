"""Which functions ran for an HTTP request: the front door, and the function that it invoked."""

from __future__ import annotations

import json
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_functions.local.lambdas.service import Outcome

MAX_REQUESTS = 500  # that are kept


class ExecutionLog:
    """The executions of the last requests, by API Gateway's request id."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock, self._by_request = Lock(), OrderedDict[str, list[dict[str, Any]]]()

    def of(self, request_id: str) -> list[dict[str, Any]]:
        """Return the executions for a request, in the order in which they ended."""
        with self._lock:
            return list(self._by_request.get(request_id, ()))

    def add(self, folder: str, event: bytes, outcome: Outcome) -> None:
        """Take a call that has ended."""
        request_id = _request_id(event)
        if request_id is None:
            return
        execution = {
            "folder": folder,
            "requestId": outcome.request_id,
            "milliseconds": round(outcome.milliseconds, 1),
            "error": outcome.error,
            "initMilliseconds": outcome.init_milliseconds,
            "memoryMb": outcome.memory_mb,
        }
        with self._lock:
            self._by_request.setdefault(request_id, []).append(execution)
            while len(self._by_request) > MAX_REQUESTS:
                self._by_request.popitem(last=False)


def _request_id(event: bytes) -> str | None:
    """Return API Gateway's id, which the front door forwards unchanged. The event of a worker has none."""
    match json.loads(event):
        case {"requestContext": {"requestId": str(request_id)}}:
            return request_id
    return None
