"""A correct MCP server with optional holes, on which the checks of `tests/attack` are tested.

    with running("state-expired") as url:     a server that accepts expired states
        …                                     the check "state-expired" must find that, and no other check anything

A hole has the name of the check that must find it. Without holes no check finds anything. The server is written from
the specification, and imports nothing of the package.

    round 1   tools/call book                     -> question "seat", and a state
    round 2   the call, the answer, the state     -> question "meal", and a new state
    round 3   the call, the answer, the state     -> the result
"""

from __future__ import annotations

import base64
import json
import traceback
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, NoReturn

from tests.support.weak_states import RefusedState, WeakStates

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"  # begins the names of the protocol's members of `_meta`
LIFETIME = 0.2  # seconds, for tests that wait until a state has expired
NAMED = {"tools/call": "name", "prompts/get": "name"}  # method -> the parameter that the header Mcp-Name repeats
SEAT = {
    "type": "object",
    "properties": {"seat": {"type": "string", "enum": ["window", "aisle"]}, "bags": {"type": "integer", "maximum": 3}},
    "required": ["seat"],
}
MEAL = {"type": "object", "properties": {"meal": {"type": "string"}}, "required": ["meal"]}
# method and name of a call -> its questions: key and schema
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


@dataclass
class WeakServer:
    """The server.

    Attributes:
        holes: names of checks.
        states: seals and opens the states.
        polluted: members of `__proto__` in earlier requests (hole prototype-pollution).
        dead: whether the server answers no more (hole survives-odd-json).
    """

    holes: frozenset[str]
    states: WeakStates
    polluted: dict[str, Any] = field(default_factory=dict)
    dead: bool = False

    def has(self, hole: str) -> bool:
        return hole in self.holes

    # ---- HTTP

    def answer(
        self, method: str, header_pairs: list[tuple[str, str]], body: bytes, claimed_length: int
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the response to a request; `claimed_length` is its Content-Length."""
        headers: dict[str, str] = {}
        for name, value in header_pairs:
            key = name.lower()
            headers[key] = f"{headers[key]}, {value}" if key in headers else value
        response_headers = self._response_headers(headers)
        message: dict[str, Any] = {}
        outcome: dict[str, Any]
        try:
            self._check_http(method, headers, len(body), claimed_length)
            parsed = self._parse(body)
            if isinstance(parsed, list):
                responses = [{"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}}]
                return 200, response_headers, json.dumps(responses).encode()
            message = parsed
            if "id" not in message:
                if self.has("notification-answered"):
                    return 200, response_headers, b'{"jsonrpc": "2.0", "result": {"resultType": "complete"}}'
                return 202, response_headers, b""
            status = 200
            outcome = {"result": self._result(message, headers)}
        except RefusedState as refused:
            status = refused.status
            outcome = {"error": refused.error}
            if status == 403 and self.has("traces-and-paths"):
                refused.error["data"] = "".join(traceback.format_stack())
        except Exception:  # noqa: BLE001 - the checks look for such responses
            status = 500
            outcome = {"error": {"code": -32603, "message": "Internal error"}}
        response_headers["Content-Type"] = "application/json"
        response = {"jsonrpc": "2.0", **self._id_of(message), **outcome}
        return status, response_headers, json.dumps(response).encode()

    def _response_headers(self, headers: dict[str, str]) -> dict[str, str]:
        response_headers: dict[str, str] = {}
        if not self.has("cache-control"):
            response_headers["Cache-Control"] = "no-store"
        if self.has("session-ids"):
            response_headers["Mcp-Session-Id"] = "1868a90c"
        if self.has("cors-with-credentials") and "origin" in headers:
            response_headers["Access-Control-Allow-Origin"] = headers["origin"]
            response_headers["Access-Control-Allow-Credentials"] = "true"
        return response_headers

    def _id_of(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the member `id` of the response to a message."""
        id_ = message.get("id")
        if type(id_) not in (int, str) and not self.has("ids-that-are-none"):
            return {}
        return {"id": str(id_) if self.has("ids") else id_}

    def _check_http(self, method: str, headers: dict[str, str], length: int, claimed_length: int) -> None:
        if "origin" in headers and not self.has("origin-of-a-stranger"):
            self._refuse(400 if self.has("origin-status") else 403, -32600, "Origin")
        if not headers.get("host", "").startswith("127.0.0.1") and not self.has("foreign-host"):
            self._refuse(421, -32600, "Host")
        if method != "POST":
            self._refuse(400 if self.has("http-methods") else 405, -32600, "Method")
        if not headers.get("content-type", "").startswith("application/json") and not self.has("text-plain"):
            self._refuse(415, -32600, "Content-Type")
        if length != claimed_length and not self.has("half-a-message"):
            self._refuse(400, -32600, "Incomplete")

    # ---- JSON

    def _parse(self, body: bytes) -> Any:  # noqa: ANN401 - JSON
        """Read one JSON-RPC message; with the hole not-one-request, also a list of them."""

        def read_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
            has_key_twice = len({key for key, _value in members}) < len(members)
            if has_key_twice and not self.has("keys-twice"):
                self._refuse(400, -32700, "Parse error")
            return dict(members)

        def read_constant(name: str) -> int:  # NaN and Infinity are not JSON
            if not self.has("text-that-is-not-json"):
                self._refuse(400, -32700, f"Parse error: {name}")
            return 0

        try:
            message = json.loads(body.decode(), object_pairs_hook=read_object, parse_constant=read_constant)
        except (ValueError, RecursionError):
            self.dead = self.has("survives-odd-json") and len(body) > 10_000
            self._refuse(500 if self.has("server-errors") else 400, -32700, "Parse error")
        if isinstance(message, list) and self.has("not-one-request"):
            return message
        self._check_message(message)
        if self.has("prototype-pollution") and isinstance(message.get("params"), dict):
            self.polluted |= message["params"].get("__proto__") or {}
        return message

    def _check_message(self, message: Any) -> None:  # noqa: ANN401 - JSON
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._refuse(400, -32600, "Invalid request")
        if not isinstance(message.get("method"), str):
            self._refuse(400, -32600, "Invalid request")
        if "id" in message and type(message["id"]) not in (int, str) and not self.has("ids-that-are-none"):
            self._refuse(400, -32600, "Invalid request")

    # ---- MCP

    def _result(self, message: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        if not isinstance(params, dict) or not isinstance(meta, dict) or META + "clientCapabilities" not in meta:
            self._refuse(400, -32602, "_meta")
        method = message["method"]
        version = meta[META + "protocolVersion"]
        name = params.get(NAMED.get(method, ""))
        self._check_headers(headers, {"mcp-protocol-version": version, "mcp-method": method, "mcp-name": name})
        if version != VERSION:
            code = -32602 if self.has("codes-of-refusals") else -32022
            self._refuse(400, code, "Version", {"supported": [VERSION], "requested": version})
        result_type = {} if self.has("result-type") else {"resultType": "complete"}
        if method in LISTS:
            return {**result_type, **LISTS[method], "ttlMs": 0, "cacheScope": "private", **self.polluted}
        questions = QUESTIONS.get((method, params.get("name", "")))
        if questions is None:
            wrong_status = self.has("statuses") and method not in NAMED
            self._refuse(200 if wrong_status else 404, -32601, "Method not found")
        return {**result_type, **self._call(message, questions, headers.get("authorization", ""))}

    def _check_headers(self, headers: dict[str, str], expected: dict[str, Any]) -> None:
        """Check that headers repeat values of the body; a value may be in base64, `=?base64?TEVWRUw=?=`."""
        for name, value in expected.items():
            sent = headers.get(name)
            if sent and sent.startswith("=?base64?") and not self.has("header-in-base64"):
                with suppress(ValueError):
                    encoded = sent.removeprefix("=?base64?").removesuffix("?=")
                    sent = base64.b64decode(encoded, validate=True).decode()
            if value is not None and sent != value and not self.has("headers-against-body"):
                self._refuse(400, -32602 if self.has("header-error") else -32020, "Header mismatch")

    def _call(self, message: dict[str, Any], questions: list[tuple[str, Any]], person: str) -> dict[str, Any]:
        """Ask the next question, or return the result; `person` is the value of the header Authorization."""
        params = message["params"]
        state = params.get("requestState")
        bound = {
            "method": message["method"],
            "name": params["name"],
            "arguments": params.get("arguments"),
            "person": person,
        }
        contents: dict[str, Any] = {"asked": [], "answers": {}}
        if "requestState" in params:
            contents = self.states.open(state, bound)
        answers = {**contents["answers"], **self._valid_answers(params, questions, contents["asked"])}
        unanswered = [(key, schema) for key, schema in questions if key not in answers]
        if unanswered:
            self._check_capability(params["_meta"][META + "clientCapabilities"])
            self.states.note_use(state, last=False, went_on=answers != contents["answers"])
            key, schema = unanswered[0]
            new_contents = {"asked": [key], "answers": answers, **bound}
            form = {"mode": "form", "message": key, "requestedSchema": schema}
            return {
                "resultType": "input_required",
                "inputRequests": {key: {"method": "elicitation/create", "params": form}},
                "requestState": self.states.seal(new_contents),
            }
        self.states.note_use(state, last=True, went_on=True)
        hints = {"ttlMs": 60_000} if self.has("cache-hints") else {}
        return {"content": [{"type": "text", "text": "Done."}], "messages": [], **hints}

    def _valid_answers(
        self, params: dict[str, Any], questions: list[tuple[str, Any]], asked: list[str]
    ) -> dict[str, Any]:
        """Return the answers of a request to questions that were asked."""
        responses = params.get("inputResponses", {})
        if not isinstance(responses, dict):
            self._refuse(400, -32602, "inputResponses")
        state = params.get("requestState")
        takes_every_answer = self.has("cold-answers") if state is None else self.has("answers-ahead")
        return {
            key: responses[key]
            for key, schema in questions
            if key in responses and (key in asked or takes_every_answer) and self._fits(responses[key], schema)
        }

    def _fits(self, response: Any, schema: dict[str, Any]) -> bool:  # noqa: ANN401 - JSON
        """Tell whether an answer accepts, with content that the schema allows."""
        if not isinstance(response, dict):
            if self.has("answers-malformed"):
                return True
            self._refuse(400, -32602, "inputResponses")
        if self.has("answers-that-do-not-fit"):
            return bool(response)
        content = response.get("content")
        if response.get("action") != "accept" or not isinstance(content, dict):
            return False
        has_required = all(key in content for key in schema["required"])
        members = schema["properties"]
        return has_required and all(
            _member_fits(value, members[key]) for key, value in content.items() if key in members
        )

    def _check_capability(self, declared: dict[str, Any]) -> None:
        """Check that the client can show a form. A client that declares only `elicitation: {}` can."""
        elicitation = declared.get("elicitation")
        if elicitation is None:
            is_refused = not self.has("undeclared-capability")
        else:
            only_urls = "url" in elicitation and "form" not in elicitation
            is_refused = only_urls and not self.has("undeclared-mode")
        if is_refused:
            code = -32602 if self.has("capability-error") else -32021
            self._refuse(400, code, "Capability", {"requiredCapabilities": {"elicitation": {}}})

    def _refuse(self, status: int, code: int, message: str, data: object = None) -> NoReturn:
        raise RefusedState(status, code, message, data)


def _member_fits(value: object, member: dict[str, Any]) -> bool:
    types: dict[str, type] = {"string": str, "integer": int}
    if not isinstance(value, types[member["type"]]):
        return False
    if "enum" in member and value not in member["enum"]:
        return False
    return "maximum" not in member or value <= member["maximum"]


@contextmanager
def running(*holes: str, lifetime: float = 3600.0) -> Iterator[str]:
    """Run a server with these holes; yield its URL.

    Args:
        holes: names of checks.
        lifetime: seconds until a state expires.
    """
    server = WeakServer(frozenset(holes), WeakStates(frozenset(holes), lifetime))

    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            if not server.dead:
                super().handle()

        def log_message(self, *_words: object) -> None:
            """Write no log."""

        def answer(self) -> None:
            claimed_length = int(self.headers.get("content-length") or 0)
            request_body = self.rfile.read(claimed_length)
            pairs = self.headers.items()
            status, headers, response_body = server.answer(self.command, pairs, request_body, claimed_length)
            if server.dead:
                return
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(response_body)))
            self.end_headers()
            self.wfile.write(response_body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer  # noqa: N815 - the library's names

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}/mcp"
        listening.shutdown()
        thread.join()
