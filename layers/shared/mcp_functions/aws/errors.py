"""Errors of AWS calls, with botocore's names: callers sort the errors of both kinds of clients by these names.

An error keeps the code of an answer but not its message, because a message may quote the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class ClientError(Exception):
    """The service answered with an error.

    Attributes:
        code: the service's error code.
        status: the HTTP status.
        response: both in botocore's shape, and `Item`, the item that failed a condition of DynamoDB.

    """

    def __init__(self, code: str, status: int, item: Mapping[str, Any] | None = None) -> None:
        """Keep what `response` needs."""
        super().__init__(code)
        self.code, self.status = code, status
        self.response: dict[str, Any] = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
        if item is not None:
            self.response["Item"] = item


class HTTPClientError(OSError):
    """No complete response arrived."""


class ConnectTimeoutError(HTTPClientError):
    """The connection was not accepted in time; the request was not sent."""


class EndpointConnectionError(HTTPClientError):
    """The connection was refused or the host is unknown; the request was not sent."""


class SSLError(HTTPClientError):
    """The server's certificate is not trusted; the request was not sent."""


class ReadTimeoutError(HTTPClientError):
    """The request was sent, and the response did not arrive in time."""


class ConnectionClosedError(HTTPClientError):
    """The connection ended after part of the request was sent."""


class MetadataRetrievalError(HTTPClientError):
    """Lambda's credentials endpoint returned no credentials."""
