"""An HTTP client that sends bytes as they are: ordinary clients correct what an attack needs to be wrong.

`send` takes a Request and returns its Response, whose properties read JSON-RPC. It adds credentials only while it
sends, and no Request keeps them, so a report cannot contain them.
"""

from __future__ import annotations

import json
import socket
import time
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_functions.protocol.wire_types import Error, InputRequest, JSONRPCMessage, ResultObject

CALLER = "caller"  # the user whose credentials most requests have
OTHER = "other"  # a second user, who tries to use what belongs to the first one
EVENT_STREAM = "text/event-stream"
MAX_BODY = 16 * 1024 * 1024  # bytes of a response that are read
RESPONSE_SECONDS = 10.0  # the longest wait for one response


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    body: bytes
    headers: tuple[tuple[str, str], ...] = ()  # without credentials
    method: str = "POST"
    person: str = CALLER  # whose credentials are added: CALLER or OTHER
    content_length: int | None = None  # if it differs from the body's length


@dataclass(frozen=True)
class Response:
    """One HTTP response, or why there is none."""

    status: int  # 0 if there is no response
    headers: Mapping[str, str] = field(default_factory=dict)  # by name in lower case
    body: bytes = b""
    failed: str = ""  # the type of the exception if there is no response

    @cached_property
    def messages(self) -> list[JSONRPCMessage]:
        """The JSON-RPC messages of the body; a stream has notifications too."""
        text = self.body.decode(errors="replace")
        if not self.headers.get("content-type", "").startswith(EVENT_STREAM):
            return [parse_message(text)]
        data_lines = [line for line in text.splitlines() if line.startswith("data:")]
        return [parse_message(line.removeprefix("data:")) for line in data_lines]

    @property
    def message(self) -> JSONRPCMessage:
        """The JSON-RPC response; {} if the body has none."""
        responses = [message for message in self.messages if _is_response(message)]
        return responses[-1] if responses else {}

    @property
    def result(self) -> ResultObject | None:
        """The JSON-RPC result; None if there is none, as in the properties below."""
        result = self.message.get("result")
        return result if isinstance(result, dict) else None

    @property
    def error(self) -> Error | None:
        """The JSON-RPC error."""
        error = self.message.get("error")
        return error if isinstance(error, dict) else None

    @property
    def code(self) -> int | None:
        """The JSON-RPC error's code."""
        code = self.error.get("code") if self.error else None
        return code if isinstance(code, int) else None

    @property
    def questions(self) -> dict[str, InputRequest] | None:
        """The `inputRequests` of an `input_required` result, if the response is one."""
        if self.result is None or self.result.get("resultType") != "input_required":
            return None
        requests = self.result.get("inputRequests")
        return requests if isinstance(requests, dict) else {}

    @property
    def state(self) -> str | None:
        """The `requestState` of the result. Only an `input_required` result has one."""
        state = (self.result or {}).get("requestState")
        return state if isinstance(state, str) else None

    @property
    def done(self) -> bool:
        """Whether the call has a result that is neither a question nor a tool error."""
        return self.result is not None and self.questions is None and not self.result.get("isError")

    @property
    def undecided(self) -> bool:
        """Whether the server did not judge the request: no response, 429, or 503 with Retry-After."""
        if self.status in {0, HTTPStatus.TOO_MANY_REQUESTS}:
            return True
        return self.status == HTTPStatus.SERVICE_UNAVAILABLE and "retry-after" in self.headers

    def __str__(self) -> str:
        """Summarize the response in one line."""
        if self.failed:
            return f"no answer ({self.failed})"
        if self.error is not None:
            return f"HTTP {self.status}, error {self.code}: {str(self.error.get('message'))[:120]}"
        if self.questions is not None:
            return f"HTTP {self.status}, input_required: {', '.join(self.questions) or 'no questions'}"
        if self.result is None:
            return f"HTTP {self.status}, no JSON-RPC response"
        return f"HTTP {self.status}, {'isError' if self.result.get('isError') else 'a complete result'}"


def send(
    url: str, request: Request, credentials: Iterable[tuple[str, str]] = (), *, seconds: float = RESPONSE_SECONDS
) -> Response:
    """Send a request with credentials, and wait some seconds for its response.

    A broken connection gives a response of status 0.
    """
    address = urlsplit(url)
    connection_class = HTTPSConnection if address.scheme == "https" else HTTPConnection
    path = address.path or "/"
    if address.query:
        path += f"?{address.query}"
    length = len(request.body) if request.content_length is None else request.content_length
    has_host = any(name.lower() == "host" for name, _value in request.headers)
    try:
        with closing(connection_class(address.netloc, timeout=seconds)) as connection:
            connection.putrequest(request.method, path, skip_host=has_host, skip_accept_encoding=True)
            for name, value in (*request.headers, *credentials):
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(length))
            connection.putheader("Connection", "close")
            connection.endheaders(request.body)
            if request.content_length is not None and connection.sock:
                connection.sock.shutdown(socket.SHUT_WR)  # the rest of the body never comes
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Response(response.status, headers, _read_body(response, headers, seconds))
    except (OSError, HTTPException, ValueError) as error:
        return Response(0, failed=type(error).__name__)


def _read_body(response: HTTPResponse, headers: Mapping[str, str], seconds: float) -> bytes:
    """Read a body. Of a stream, read up to the JSON-RPC response: the server may keep the stream open after it."""
    if not headers.get("content-type", "").startswith(EVENT_STREAM):
        return response.read(MAX_BODY)
    body = b""
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(body) < MAX_BODY:
        line = response.readline()
        if not line:
            break
        body += line
        text = line.decode(errors="replace")
        if text.startswith("data:") and _is_response(parse_message(text.removeprefix("data:"))):
            break
    return body


def _is_response(message: JSONRPCMessage) -> bool:
    return "result" in message or "error" in message


def parse_message(text: str | bytes) -> JSONRPCMessage:
    """Read a JSON-RPC message; {} if the text is no JSON object."""
    try:
        message: JSONRPCMessage = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
