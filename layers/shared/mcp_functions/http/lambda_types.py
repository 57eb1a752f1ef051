"""The types of Lambda's own interface, for annotations only."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

Response: TypeAlias = dict[str, Any]  # statusCode, headers, body and isBase64Encoded, as API Gateway expects them


class LambdaContext(Protocol):
    """The members of Lambda's context object that the toolkit reads."""

    function_name: str
    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda ends this invocation."""
