"""One HTTP request out, one answer in, bytes as they are: what an ordinary client library would tidy up is the point.

Credentials are added at the last moment and never kept, so that no report can hold them.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CALLER, OTHER = "caller", "other"
STREAM = "text/event-stream"
MAX_ANSWER = 16 * 1024 * 1024  # bytes
PATIENCE = 10.0  # seconds for one answer
UNAVAILABLE, TOO_MANY = 503, 429


class Spent(Exception):
    """The bounds of the run are used up."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request: `who` says whose credentials go with it, `claimed` is a Content-Length that is not the body's."""

    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    method: str = "POST"
    who: str = CALLER
    claimed: int | None = None


@dataclass(frozen=True)
class Answer:
    """What came back; status 0 if nothing did, and `failed` says how."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    failed: str = ""

    @cached_property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC response in it, `{}` if there is none."""
        text = self.body.decode(errors="replace")
        if self.headers.get("content-type", "").startswith(STREAM):
            lines = [line[5:] for line in text.splitlines() if line.startswith("data:")]
            found = [said for said in map(_read, lines) if "result" in said or "error" in said]
            return found[-1] if found else {}
        return _read(text)

    @property
    def result(self) -> dict[str, Any] | None:
        """The result, None if it is an error or nothing at all."""
        result = self.message.get("result")
        return result if isinstance(result, dict) else None

    @property
    def error(self) -> dict[str, Any] | None:
        """The JSON-RPC error."""
        error = self.message.get("error")
        return error if isinstance(error, dict) else None

    @property
    def code(self) -> int | None:
        """The JSON-RPC error's code."""
        code = self.error.get("code") if self.error else None
        return code if isinstance(code, int) else None

    @property
    def asked(self) -> dict[str, Any] | None:
        """The questions of an `input_required` result."""
        if self.result is None or self.result.get("resultType") != "input_required":
            return None
        requests = self.result.get("inputRequests")
        return requests if isinstance(requests, dict) else {}

    @property
    def state(self) -> str | None:
        """The `requestState` of an `input_required` result."""
        state = (self.result or {}).get("requestState")
        return state if isinstance(state, str) else None

    @property
    def done(self) -> bool:
        """Whether it completes the call, and not with a tool's own error."""
        return self.result is not None and self.asked is None and not self.result.get("isError")

    @property
    def undecided(self) -> bool:
        """Whether there is no verdict on the request: no answer at all, or "not now"."""
        return self.status in {0, TOO_MANY} or (self.status == UNAVAILABLE and "retry-after" in self.headers)

    def __str__(self) -> str:
        """Say it in a few words."""
        if self.error is not None:
            return f"HTTP {self.status}, error {self.code}: {str(self.error.get('message'))[:120]}"
        if self.asked is not None:
            return f"HTTP {self.status}, input_required: {', '.join(self.asked) or 'no questions'}"
        if self.result is not None:
            return f"HTTP {self.status}, {'isError' if self.result.get('isError') else 'a complete result'}"
        return f"no answer ({self.failed})" if self.failed else f"HTTP {self.status}, no JSON-RPC response"


class Exchange(NamedTuple):
    """What was sent, and what came back."""

    sent: Sent
    answer: Answer


class Line:
    """The way to the server, with a meter: one request at a time, and no more than agreed."""

    def __init__(
        self,
        url: str,
        credentials: Mapping[str, Sequence[tuple[str, str]]],
        *,
        requests: int,
        seconds: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember the way.

        Args:
            url: of the MCP endpoint.
            credentials: headers of CALLER and OTHER.
            requests: at most so many.
            seconds: for all of them together.
            now: a clock, seconds.

        """
        self.url, self.exchanges = url, list[Exchange]()
        self._credentials, self._requests, self._now = credentials, requests, now
        self._end = now() + seconds

    @property
    def seconds_left(self) -> float:
        """How long the run may still last."""
        return self._end - self._now()

    def send(self, sent: Sent) -> Exchange:
        """Send a request and wait for the answer; a connection that breaks is an answer too.

        Raises:
            Spent: the bounds are used up.

        """
        if len(self.exchanges) >= self._requests or self.seconds_left <= 0:
            raise Spent
        try:
            answer = self._answer(sent)
        except (OSError, HTTPException, ValueError) as error:
            answer = Answer(0, failed=type(error).__name__)
        self.exchanges.append(Exchange(sent, answer))
        return self.exchanges[-1]

    def _answer(self, sent: Sent) -> Answer:
        address = urlsplit(self.url)
        kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
        connection = kind(address.netloc, timeout=max(0.1, min(PATIENCE, self.seconds_left)))
        try:
            path = (address.path or "/") + (f"?{address.query}" if address.query else "")
            own_host = any(name.lower() == "host" for name, _value in sent.headers)
            connection.putrequest(sent.method, path, skip_host=own_host, skip_accept_encoding=True)
            for name, value in (*sent.headers, *self._credentials.get(sent.who, ())):
                connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(sent.body) if sent.claimed is None else sent.claimed))
            connection.putheader("Connection", "close")
            connection.endheaders(sent.body)
            if sent.claimed is not None and connection.sock:
                connection.sock.shutdown(1)  # nothing more will come
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, named, _body(response, named, self._now))
        finally:
            connection.close()


def _body(response: HTTPResponse, headers: Mapping[str, str], now: Callable[[], float]) -> bytes:
    """Read a body; of a stream, until the response has come, for it SHOULD end there and need not."""
    if not headers.get("content-type", "").startswith(STREAM):
        return response.read(MAX_ANSWER)
    end, read = now() + PATIENCE, b""
    while now() < end and len(read) < MAX_ANSWER and (line := response.readline()):
        read += line
        said = _read(line[5:].decode(errors="replace")) if line.startswith(b"data:") else {}
        if "result" in said or "error" in said:
            break
    return read


def _read(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
