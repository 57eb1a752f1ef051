"""HTTP requests and responses as values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request."""

    method: str
    target: str  # the path and the query as the client sent them
    headers: tuple[tuple[str, str], ...]
    body: bytes | None  # None if it has no body
    protocol: str = "HTTP/1.1"
    source_ip: str = HOST  # the client's address
    port: int = 80  # the server's port

    def header(self, name: str) -> str:
        """Return the first value of a header, or "".

        Args:
            name: the header's name, in lower case.
        """
        return next(iter(self.values(name)), "")

    def values(self, name: str) -> list[str]:
        """Return every value of a header; its name is given in lower case."""
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def is_signed(self) -> bool:
        """Whether it has a signature of AWS (SigV4), as every request of an AWS client has.

        The signature itself is not checked. But a web page of another origin cannot send the header Authorization: the
        browser asks for permission before (a preflight), and the copies of AWS's services refuse that.
        """
        return self.header("authorization").startswith("AWS4-")


@dataclass(frozen=True)
class HttpResponse:
    """One HTTP response; the server adds Date, Content-Length and Connection."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


def json_object(text: str | bytes) -> dict[str, Any]:
    """Read a JSON object; {} if the text is no JSON, or another value."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def json_response(status: int, value: object, *headers: tuple[str, str]) -> HttpResponse:
    """Make a response of a JSON value."""
    return HttpResponse(status, (("content-type", "application/json"), *headers), json.dumps(value).encode())
