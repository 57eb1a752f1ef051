"""What goes wrong with a call, named as botocore names it: whoever sorts the errors of one sorts those of the other.

An answer's own words are not kept: they may quote what was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class ClientError(Exception):
    """The service refused, or failed."""

    def __init__(self, code: str, status: int, item: Mapping[str, Any] | None = None) -> None:
        """Take the error's code, the HTTP status, and the item that was in the way, if DynamoDB tells."""
        super().__init__(code)
        self.code, self.status = code, status
        self.response: dict[str, Any] = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
        if item is not None:
            self.response["Item"] = item


class Unanswered(OSError):
    """There is no answer at all."""


class ConnectTimeoutError(Unanswered):
    """Nobody took the connection in time: nothing was sent."""


class EndpointConnectionError(Unanswered):
    """Nobody is there: nothing was sent."""


class SSLError(Unanswered):
    """Whoever is there cannot be trusted: nothing was sent."""


class ReadTimeoutError(Unanswered):
    """The request was sent, and then there was silence."""


class ConnectionClosedError(Unanswered):
    """The request was sent, at least in part, and then the connection ended."""


class MetadataRetrievalError(Unanswered):
    """Lambda did not hand out credentials."""
