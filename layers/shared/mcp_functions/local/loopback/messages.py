"""HTTP requests and responses as values."""

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
        """Return the first value of a header; "" if there is none. The name is in lower case."""
        values = self.values(name)
        return values[0] if values else ""

    def values(self, name: str) -> list[str]:
        """Return every value of a header. The name is in lower case."""
        return [value for key, value in self.headers if key.lower() == name]

    @property
    def is_signed(self) -> bool:
        """Whether the request has a signature of AWS (SigV4), as every request of an AWS client has.

        The signature itself is not checked. The header alone keeps web pages out: before a browser sends the header
        Authorization for a page, it asks the server (CORS preflight), and the copies of AWS's services do not allow it.
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
    """Make a response with a JSON value as its body."""
    return HttpResponse(status, (("content-type", "application/json"), *headers), json.dumps(value).encode())
