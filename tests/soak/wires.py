"""The requests of the soak test, their outcomes, and the connections that carry them."""

from __future__ import annotations

import base64
import json
import struct
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from tests.soak.placing import BREAK, DELIVERY, KILL
from tests.support import wire

SECONDS = 60.0  # that anybody waits
BORN = struct.Struct(">BBI")  # envelope.md §3: suite, kind of key, its birth
METHODS = {"order": "tools/call", "note": "resources/read"}


@dataclass
class Delivery:
    """One HTTP request and its response.

    Attributes:
        name: of this request alone.
        talk: the number of its conversation.
        what: the name of its fault, or "".
        parent: the request whose response gave it its state.
        person: its caller.
        method: of the message.
        id: of the message; a message that is sent twice is two deliveries with one id.
        sent: when, unix seconds.
        seconds: until the response arrived.
        status: of the response; None without one.
        message: the response's body without its state, or None if it was no JSON object.
        headers: the relevant headers of the response.
        born: when the data key of the response's state was made; None without a state.
        broken: the defect that the functions show on purpose; "" for none.

    """

    name: str
    talk: int
    what: str
    parent: str | None
    person: str
    method: str
    id: str
    sent: float = 0.0
    seconds: float = 0.0
    status: int | None = None
    message: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    born: int | None = None
    broken: str = ""

    @property
    def result(self) -> dict[str, Any]:
        """The result, or nothing."""
        found: dict[str, Any] = (self.message or {}).get("result", {})
        return found

    @property
    def error(self) -> dict[str, Any]:
        """The JSON-RPC error, or nothing."""
        found: dict[str, Any] = (self.message or {}).get("error", {})
        return found


class Door:
    """The endpoint for many threads: each thread has its own connection."""

    def __init__(self, url: str, tokens: dict[str, str]) -> None:
        """Open nothing yet."""
        self._url, self._tokens, self._own = urlsplit(url), tokens, threading.local()

    def deliver(self, delivery: Delivery, params: dict[str, Any], kill: str = "") -> str | None:
        """Send a request, record the response, and return its state."""
        sent = wire.message(delivery.method, params, id=delivery.id)
        delivery.sent = time.time()
        try:
            status, headers, body = self._exchange(sent, self._headers(sent, delivery, kill))
        except (OSError, HTTPException):
            self._own.connection.close()
            status, headers, body = None, {}, b""
        delivery.seconds = time.time() - delivery.sent
        delivery.status, delivery.headers, delivery.message = status, headers, _object(body)
        state: str | None = delivery.result.pop("requestState", None)
        delivery.born = born(state) if state else None
        return state

    def lose(self, delivery: Delivery, params: dict[str, Any], seconds: float) -> None:
        """Send a request, and hang up before its answer."""
        sent = wire.message(delivery.method, params, id=delivery.id)
        delivery.sent = time.time()
        connection = HTTPConnection(str(self._url.netloc), timeout=SECONDS)
        connection.request("POST", self._url.path, json.dumps(sent), self._headers(sent, delivery, ""))
        time.sleep(seconds)
        connection.close()

    def close(self) -> None:
        """Hang up, in the thread that asked."""
        if hasattr(self._own, "connection"):
            self._own.connection.close()

    def _exchange(self, sent: dict[str, Any], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if not hasattr(self._own, "connection"):
            self._own.connection = HTTPConnection(str(self._url.netloc), timeout=SECONDS)
        self._own.connection.request("POST", self._url.path, json.dumps(sent), headers)
        answer = self._own.connection.getresponse()
        kept = {name.lower(): value for name, value in answer.getheaders() if name.lower() == "retry-after"}
        return answer.status, kept, answer.read()

    def _headers(self, sent: dict[str, Any], delivery: Delivery, kill: str) -> dict[str, str]:
        token = {"authorization": f"Bearer {self._tokens[delivery.person]}"}
        befalls = {name: value for name, value in ((KILL, kill), (BREAK, delivery.broken)) if value}
        return {**wire.headers(sent), **token, DELIVERY: delivery.name, **befalls}


def born(state: str) -> int:
    """Read from a token, in clear, when its data key was born."""
    head = base64.urlsafe_b64decode(state.removeprefix("ks1.")[:8])
    return int(BORN.unpack(head)[2])


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
