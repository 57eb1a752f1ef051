"""A correct MCP server with optional holes, on which the attacker is tested.

It is written from the specification and imports nothing of the package. A hole has the name of the check that must
find it. Without holes the attacker finds nothing, not even a state that can be used twice.
"""

from __future__ import annotations

import base64
import json
import os
import time
import traceback
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, NoReturn

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
NAMED = {"tools/call": "name", "prompts/get": "name"}
LIFETIME = 0.2  # seconds by default
SEAT = {
    "type": "object",
    "properties": {"seat": {"type": "string", "enum": ["window", "aisle"]}, "bags": {"type": "integer", "maximum": 3}},
    "required": ["seat"],
}
MEAL = {"type": "object", "properties": {"meal": {"type": "string"}}, "required": ["meal"]}
QUESTIONS = {
    ("tools/call", "book"): [("seat", SEAT), ("meal", MEAL)],
    ("tools/call", "pay"): [("seat", SEAT)],
    ("prompts/get", "book"): [("seat", SEAT)],
}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
LISTS: dict[str, dict[str, Any]] = {
    "tools/list": {"tools": [{"name": name, "inputSchema": CITY} for name in ("book", "pay")]},
    "prompts/list": {"prompts": [{"name": "book", "arguments": [{"name": "city", "required": True}]}]},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "server/discover": {"supportedVersions": [VERSION], "capabilities": {"tools": {}, "prompts": {}}},
}


class Refused(Exception):
    """An error for the wire."""

    def __init__(self, status: int, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.status, self.error = status, {"code": code, "message": message} | ({"data": data} if data else {})


@dataclass
class WeakServer:
    """The server; `holes` are names of checks."""

    holes: frozenset[str] = frozenset()
    lifetime: float = 3600.0
    polluted: dict[str, Any] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    issued: dict[str, str] = field(default_factory=dict)  # from the upper-case form of a state to the state
    dead: bool = False
    key: AESGCM = field(default_factory=lambda: AESGCM(os.urandom(32)))

    def has(self, *holes: str) -> bool:
        return any(hole in self.holes for hole in holes)

    # ---- HTTP

    def answer(
        self, method: str, headers: list[tuple[str, str]], body: bytes, claimed: int
    ) -> tuple[int, dict[str, str], bytes]:
        named: dict[str, str] = {}
        for name, value in headers:
            named[name.lower()] = f"{named[name.lower()]}, {value}" if name.lower() in named else value
        extra: dict[str, str] = {} if self.has("cache-control") else {"Cache-Control": "no-store"}
        if self.has("session-ids"):
            extra["Mcp-Session-Id"] = "1868a90c"
        if self.has("cors-with-credentials") and "origin" in named:
            extra |= {"Access-Control-Allow-Origin": named["origin"], "Access-Control-Allow-Credentials": "true"}
        id_: Any = None
        try:
            self._check_http(method, named, len(body), claimed)
            message = self._parsed(body)
            if isinstance(message, list):
                return (
                    200,
                    extra,
                    json.dumps([{"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}}]).encode(),
                )
            id_ = message.get("id")
            if "id" not in message:
                return (
                    (200, extra, b'{"jsonrpc": "2.0", "result": {"resultType": "complete"}}')
                    if self.has("notification-answered")
                    else (202, extra, b"")
                )
            said: dict[str, Any] = {"result": self._result(message, named)}
            status = 200
        except Refused as refused:
            status, said = refused.status, {"error": refused.error}
        except Exception:  # noqa: BLE001 - a server that fails says so
            status, said = 500, {"error": {"code": -32603, "message": "Internal error"}}
        if status == 403 and "error" in said and self.has("traces-and-paths"):
            said["error"]["data"] = "".join(traceback.format_stack())
        known = (
            {"id": str(id_) if self.has("ids") else id_}
            if type(id_) in (int, str) or self.has("ids-that-are-none")
            else {}
        )
        return (
            status,
            {**extra, "Content-Type": "application/json"},
            json.dumps({"jsonrpc": "2.0", **known, **said}).encode(),
        )

    def _check_http(self, method: str, headers: dict[str, str], got: int, claimed: int) -> None:
        if "origin" in headers and not self.has("origin-of-a-stranger"):
            self._refuse(400 if self.has("origin-status") else 403, -32600, "Origin")
        if not headers.get("host", "").startswith("127.0.0.1") and not self.has("foreign-host"):
            self._refuse(421, -32600, "Host")
        if method != "POST":
            self._refuse(400 if self.has("http-methods") else 405, -32600, "Method")
        if not headers.get("content-type", "").startswith("application/json") and not self.has("text-plain"):
            self._refuse(415, -32600, "Content-Type")
        if got != claimed and not self.has("half-a-message"):
            self._refuse(400, -32600, "Incomplete")

    # ---- JSON

    def _parsed(self, body: bytes) -> Any:  # noqa: ANN401 - JSON
        def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
            if len({key for key, _value in found}) != len(found) and not self.has("keys-twice"):
                self._refuse(400, -32700, "Parse error")
            return dict(found)

        def constant(name: str) -> Any:  # noqa: ANN401 - JSON
            return 0 if self.has("text-that-is-not-json") else self._refuse(400, -32700, f"Parse error: {name}")

        try:
            message = json.loads(body.decode(), object_pairs_hook=pairs, parse_constant=constant)
        except (ValueError, RecursionError):
            self.dead = self.has("survives-odd-json") and len(body) > 10_000
            self._refuse(500 if self.has("server-errors") else 400, -32700, "Parse error")
        if isinstance(message, list) and self.has("not-one-request"):
            return message
        if (
            not isinstance(message, dict)
            or message.get("jsonrpc") != "2.0"
            or not isinstance(message.get("method"), str)
        ):
            self._refuse(400, -32600, "Invalid request")
        if "id" in message and type(message["id"]) not in (int, str) and not self.has("ids-that-are-none"):
            self._refuse(400, -32600, "Invalid request")
        params = message.get("params")
        if self.has("prototype-pollution") and isinstance(params, dict):
            self.polluted |= params.get("__proto__") or {}
        return message

    # ---- MCP

    def _result(self, message: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        if not isinstance(params, dict) or not isinstance(meta, dict) or META + "clientCapabilities" not in meta:
            self._refuse(400, -32602, "_meta")
        method, version = message["method"], meta[META + "protocolVersion"]
        self._check_headers(
            headers,
            {"mcp-protocol-version": version, "mcp-method": method, "mcp-name": params.get(NAMED.get(method, ""))},
        )
        if version != VERSION:
            self._refuse(
                400,
                -32602 if self.has("codes-of-refusals") else -32022,
                "Version",
                {"supported": [VERSION], "requested": version},
            )
        typed = {} if self.has("result-type") else {"resultType": "complete"}
        if method in LISTS:
            return {**typed, **LISTS[method], "ttlMs": 0, "cacheScope": "private", **self.polluted}
        questions = QUESTIONS.get((method, params.get("name", "")))
        if questions is None:
            self._refuse(200 if self.has("statuses") and method not in NAMED else 404, -32601, "Method not found")
        return {**typed, **self._call(message, questions, headers.get("authorization", ""))}

    def _check_headers(self, headers: dict[str, str], body: dict[str, Any]) -> None:
        for name, value in body.items():
            sent = headers.get(name)
            if sent and sent.startswith("=?base64?") and not self.has("header-in-base64"):
                with suppress(ValueError):
                    sent = base64.b64decode(sent[9:-2], validate=True).decode()
            if value is not None and sent != value and not self.has("headers-against-body"):
                self._refuse(400, -32602 if self.has("header-error") else -32020, "Header mismatch")

    def _call(self, message: dict[str, Any], questions: list[tuple[str, Any]], person: str) -> dict[str, Any]:
        params = message["params"]
        bound = {
            "method": message["method"],
            "name": params["name"],
            "arguments": params.get("arguments"),
            "person": person,
        }
        state, responses = params.get("requestState"), params.get("inputResponses", {})
        known = self._opened(state, bound) if "requestState" in params else {"asked": [], "answers": {}}
        if not isinstance(responses, dict):
            self._refuse(400, -32602, "inputResponses")
        answers = dict(known["answers"])
        for key, schema in questions:
            asked = key in known["asked"] or (state is not None and self.has("answers-ahead"))
            if (
                key in responses
                and (asked or (state is None and self.has("cold-answers")))
                and self._fits(responses[key], schema)
            ):
                answers[key] = responses[key]
        if missing := [(key, schema) for key, schema in questions if key not in answers][:1]:
            self._check_capability(params["_meta"][META + "clientCapabilities"])
            self._use(state, last=False, went_on=answers != known["answers"])
            left = {
                "asked": [key for key, _schema in missing],
                "answers": answers,
                "until": time.time() + self.lifetime,
                **bound,
            }
            ask = {
                key: {"method": "elicitation/create", "params": {"mode": "form", "message": key, "requestedSchema": s}}
                for key, s in missing
            }
            return {"resultType": "input_required", "inputRequests": ask, "requestState": self._sealed(left)}
        self._use(state, last=True, went_on=True)
        hints = {"ttlMs": 60_000} if self.has("cache-hints") else {}
        return {"content": [{"type": "text", "text": "Done."}], "messages": [], **hints}

    def _fits(self, response: Any, schema: dict[str, Any]) -> bool:  # noqa: ANN401 - JSON
        if not isinstance(response, dict):
            if self.has("answers-malformed"):
                return True
            self._refuse(400, -32602, "inputResponses")
        if self.has("answers-that-do-not-fit"):
            return bool(response)
        content = response.get("content")
        if response.get("action") != "accept" or not isinstance(content, dict):
            return False
        types: dict[str, type] = {"string": str, "integer": int}
        return all(key in content for key in schema["required"]) and all(
            isinstance(value, types[member["type"]])
            and value in member.get("enum", [value])
            and ("maximum" not in member or value <= member["maximum"])
            for key, value in content.items()
            if (member := schema["properties"].get(key))
        )

    def _check_capability(self, declared: dict[str, Any]) -> None:
        elicitation = declared.get("elicitation")
        if self.has("undeclared-capability") and elicitation is None:
            return
        if elicitation is None or (
            "url" in elicitation and "form" not in elicitation and not self.has("undeclared-mode")
        ):
            code = -32602 if self.has("capability-error") else -32021
            self._refuse(400, code, "Capability", {"requiredCapabilities": {"elicitation": {}}})

    # ---- States

    def _sealed(self, left: dict[str, Any]) -> str:
        text = json.dumps(left).encode()
        if self.has("state-edited"):
            return base64.urlsafe_b64encode(text).decode().rstrip("=")
        nonce, shown = os.urandom(12), text if self.has("state-readable") else b""
        sealed = nonce + self.key.encrypt(nonce, text, shown)
        token = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
        if self.has("state-readable"):
            token = base64.urlsafe_b64encode(text).decode().rstrip("=") + "." + token
        self.issued[token.swapcase()] = token
        return token

    def _opened(self, state: Any, bound: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401, C901 - a hole a branch
        if isinstance(state, list) and state and self.has("state-of-another-type"):
            state = state[0]
        if state == "" and self.has("state-forged"):  # not any(...): the classic
            return {"asked": ["meal"], "answers": {"seat": "window"}}
        if not isinstance(state, str):
            self._refuse(400, -32602, "Invalid state")
        if len(state) > 50_000 and self.has("state-oversized"):
            state = next((good for good in self.issued.values() if state.startswith(good)), state)
        if self.has("state-damaged"):
            state = self.issued.get(state, state)
        try:
            known = self._decoded(state)
        except (ValueError, InvalidTag) as error:
            if self.has("state-not-refused"):
                return {"asked": [], "answers": {}}
            reason = f": {type(error).__name__}" if self.has("state-oracle") else ""
            reason += f": {state}" if self.has("reflected-secrets") else ""
            self._refuse(400, -32002 if self.has("codes") else -32602, f"Invalid state{reason}")
        checks = {
            "method": "state-for-another-method",
            "name": "state-for-another-target",
            "arguments": "state-for-other-arguments",
            "person": "state-of-another-person",
        }
        if any(known.get(name) != bound[name] and not self.has(hole) for name, hole in checks.items()):
            self._refuse(400, -32602, "Invalid state")
        if known["until"] < time.time() and not self.has("state-expired"):
            self._refuse(400, -32602, "Invalid state")
        if state in self.used:
            self._refuse(400, -32602, "Invalid state")
        return known

    def _decoded(self, state: str) -> dict[str, Any]:
        if self.has("state-edited"):
            known = json.loads(base64.urlsafe_b64decode(state + "=" * (-len(state) % 4)))
            if not isinstance(known, dict) or not {"asked", "answers", "until"} <= known.keys():
                raise ValueError(state)
            return known
        shown, _dot, token = state.rpartition(".")
        sealed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        text = base64.urlsafe_b64decode(shown + "=" * (-len(shown) % 4)) if self.has("state-readable") else b""
        if len(sealed) < 28 or not token.isascii():
            raise ValueError(state)
        parts = [text, sealed] if self.has("state-readable") else [sealed]
        exact = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) == state
        if not exact and not self.has("state-respelled"):
            raise InvalidTag
        opened: dict[str, Any] = json.loads(self.key.decrypt(sealed[:12], sealed[12:], text))
        return opened

    def _use(self, state: str | None, *, last: bool, went_on: bool) -> None:
        hole = "state-replayed" if last else "state-rewound"
        if isinstance(state, str) and went_on and not self.has(hole):
            self.used.add(state)

    def _refuse(self, status: int, code: int, message: str, data: object = None) -> NoReturn:
        raise Refused(status, code, message, data)


@contextmanager
def running(*holes: str, lifetime: float = 3600.0) -> Iterator[str]:
    """Run a server with these holes; yields its URL."""
    server = WeakServer(frozenset(holes), lifetime)

    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            if not server.dead:
                super().handle()

        def log_message(self, *_words: object) -> None:
            """Write no log."""

        def answer(self) -> None:
            claimed = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(claimed)
            status, headers, said = server.answer(self.command, self.headers.items(), body, claimed)
            if server.dead:
                return
            self.send_response_only(status)
            for name, value in {**headers, "Content-Length": str(len(said))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer  # noqa: N815 - the library's names

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/mcp"
        listening.shutdown()
        thread.join()
