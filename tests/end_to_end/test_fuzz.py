"""A damaged request gets an error of the client's, never one of the server's.

The first test damages valid requests; if the id is intact, the response must have it. The last tests send messages of
every protocol version and dialect. A dialect is a draft of the protocol that some clients speak. No line of the log may
be a crash or a failure.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functions.briefing.app import handler as briefing
from functions.mcp.app import handler as front_door
from functions.ticket.app import handler as ticket
from functions.update_work_item.app import handler as update_work_item
from mcp_functions.observability import Notes, listener
from mcp_functions_harness.testing import Context, Conversation, deployed
from tests.legacy import judging
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Iterator

STATUSES = {-32700: {400}, -32600: {400, 413, 415}, -32601: {404}, -32602: {200, 400}, -32020: {400}, -32021: {400}}
STATUSES |= {-32022: {400}}

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@cache
def valid_requests() -> list[tuple[Any, dict[str, Any]]]:
    """Return valid requests of every kind, each with its function; some have the request state of a first round."""
    resolve = Conversation(update_work_item).call(workItemId=1, fields={"System.State": "Resolved"})
    resolve.accept(resolution={"resolution": "Duplicate"})
    get = Conversation(briefing).call(topic="x").accept(audience={"audience": "engineers"})
    read = Conversation(ticket).read("tickets://A/1").decline()
    calls = [(update_work_item, resolve.rounds), (briefing, get.rounds), (ticket, read.rounds)]
    events: list[tuple[Any, Any]] = [(handler, event) for handler, rounds in calls for event, _response in rounds]
    lists = ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"]
    return events + [(front_door, wire.event(wire.message(method))) for method in lists]


@pytest.fixture(scope="module", autouse=True)
def _encrypted_states() -> None:
    """Encrypt the states beforehand, because moto's KMS uses `random`, which Hypothesis must control alone."""
    valid_requests()


class Damaged(NamedTuple):
    """A damaged request.

    Attributes:
        function: that receives it.
        event: the API Gateway event.
        id: the request's id; UNKNOWN if it is damaged too.

    """

    function: Any
    event: dict[str, Any]
    id: object


UNKNOWN = object()


@st.composite
def damaged_requests(draw: st.DrawFn) -> Damaged:
    """Draw a valid request, and damage its headers, its message or its text in one to three places."""
    function, event = draw(st.sampled_from(valid_requests()))
    event = json.loads(json.dumps(event))
    message = json.loads(event["body"])
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["header", "meta", "params", "member", "arguments", "body"]))
        if kind == "header":
            event["headers"] = draw(damaged_headers(event["headers"]))
        elif kind == "body":
            event["body"] = draw(damaged_text(event["body"]))
            return Damaged(function, event, UNKNOWN)
        else:
            draw(damage_member(_object_at(message, kind)))
        event["body"] = json.dumps(message)
    id_ = message.get("id")
    return Damaged(function, event, id_ if type(id_) in (str, int) else UNKNOWN)


@st.composite
def damaged_headers(draw: st.DrawFn, headers: dict[str, str]) -> dict[str, str]:
    name = draw(st.sampled_from(sorted(headers)))
    value = draw(st.none() | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30))
    others = {other: text for other, text in headers.items() if other != name}
    return others if value is None else {**others, name: value}


@st.composite
def damaged_text(draw: st.DrawFn, text: str) -> str:
    start = draw(st.integers(0, len(text) - 1))
    inserted = draw(st.text(max_size=3) | st.sampled_from(['"', "{", "]", "\\u0000", "\ud800"]))
    return text[:start] + inserted + text[start + draw(st.integers(0, 3)) :]


@st.composite
def damage_member(draw: st.DrawFn, value: object) -> None:
    """Replace, remove or add a member, if the value is an object."""
    if not isinstance(value, dict):
        return
    names = st.text(max_size=6)
    name = draw(st.sampled_from(sorted(value)) | names) if value else draw(names)
    value[name] = draw(JSON_VALUES)
    if draw(st.booleans()):
        del value[name]


def _object_at(message: dict[str, Any], kind: str) -> object:
    params = message.get("params", {})
    if kind == "member" or not isinstance(params, dict):
        return message
    return {"params": params, "meta": params.get("_meta"), "arguments": params.get("arguments")}[kind]


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(damaged_requests())
def test_a_damaged_request_gets_an_error_with_its_id_and_never_a_server_error(request: Damaged) -> None:
    # A new container, because one limits the invalid states of a caller.
    response = request.function.fresh()(request.event, Context("local_update_work_item"))
    assert response["statusCode"] < 500, response
    assert "Traceback" not in response["body"]
    if response["body"]:
        assert_response_matches(response, request)
    else:
        assert response["statusCode"] in (202, 403, 405)


def assert_response_matches(response: dict[str, Any], request: Damaged) -> None:
    message = wire.messages(response)[-1]
    if request.id is not UNKNOWN:
        assert message["id"] == request.id
    if "error" in message and not judging.is_earlier(request.event, response):
        assert response["statusCode"] in STATUSES[message["error"]["code"]], message


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"])
def test_any_http_method_but_post_is_405(method: str) -> None:
    event = wire.event(wire.message("tools/list"))
    event["requestContext"]["http"]["method"] = method
    response = front_door(event, Context("local_mcp"))
    assert response["statusCode"] == 405
    assert response["headers"]["allow"] == "POST"


# ---- Every protocol version and every dialect

DIALECTS = "sep-1685,sep-1858,sep-2322-tasks"
VERSIONS = [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "x"}}
CALL = {"name": "update_work_item", "arguments": {"workItemId": 1, "fields": {"System.State": "Resolved"}}}
RESPONSE = {"result": {"action": "accept", "content": {"resolution": "Fixed"}}}
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("initialize", INITIALIZE),
    ("ping", {}),
    ("logging/setLevel", {"level": "info"}),
    ("tools/list", {}),
    ("tools/call", CALL),
    ("tools/call", {**CALL, "task": {"ttl": 60_000}}),
    ("tools/call", {**CALL, "state": "ks1.x"}),
    ("prompts/get", {"name": "briefing", "arguments": {"topic": "x"}}),
    ("resources/read", {"uri": "tickets://ACME/7"}),
    ("resources/subscribe", {"uri": "tickets://ACME/7"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "briefing"}, "argument": {"name": "topic", "value": ""}},
    ),
    ("tasks/get", {"taskId": "x"}),
    ("tasks/result", {"taskId": "x"}),
    ("tasks/input_response", {"taskId": "x"}),
    ("server/discover", {}),
    ("notifications/cancelled", {"requestId": 1}),
]


@st.composite
def messages(draw: st.DrawFn) -> Any:  # noqa: ANN401 - JSON
    """Draw a message of any version: a request, a notification or a response, perhaps damaged."""
    method, params = draw(st.sampled_from(METHODS))
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method, "params": json.loads(json.dumps(params))}
    if draw(st.booleans()):
        message["params"]["_meta"] = wire.message("tools/list")["params"]["_meta"]
    if draw(st.integers(0, 4)) == 0:
        message = {"jsonrpc": "2.0", "id": "ks1.x", **RESPONSE}
    for _ in range(draw(st.integers(0, 2))):
        draw(damage_member(draw(st.sampled_from([message, message.get("params")]))))
    return message


# Empty, of one message, of several, nested.
ARRAYS = st.lists(messages() | JSON_VALUES | st.lists(messages(), max_size=2), max_size=3)


@st.composite
def events_of_any_version(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    """Draw an event, and the milliseconds that Lambda leaves for it."""
    body = draw(messages() | ARRAYS | JSON_VALUES)
    text = json.dumps(body)
    if draw(st.integers(0, 9)) == 0:
        text = draw(damaged_text(text))
    event = draw(events_with(text, body))
    event["requestContext"]["http"]["method"] = draw(st.sampled_from(["POST"] * 6 + ["GET", "DELETE"]))
    return event, draw(st.sampled_from([29_000, 29_000, 900]))


@st.composite
def events_with_arrays(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a POST of an array, under the headers of any version."""
    body = draw(ARRAYS)
    event: dict[str, Any] = draw(events_with(json.dumps(body), body))
    return event


@st.composite
def events_with(draw: st.DrawFn, text: str, body: object) -> dict[str, Any]:
    """Draw a POST of a text, with the headers that fit the value that it was written from, or that do not."""
    single = body if isinstance(body, dict) else {}
    params = single.get("params")
    name = params.get("name", params.get("uri")) if isinstance(params, dict) else None
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": draw(st.sampled_from(VERSIONS) | st.text(max_size=5)),
        "mcp-session-id": draw(st.none() | st.just("ks1.x") | st.text(max_size=5)),
        "last-event-id": draw(st.none() | st.just("ks1.x")),
        "mcp-method": single.get("method") if draw(st.booleans()) else None,
        "mcp-name": name if draw(st.booleans()) else None,
    }
    sent = {header: value for header, value in headers.items() if isinstance(value, str)}
    return wire.event(text, headers=sent)


FUNCTIONS = [(update_work_item, "update_work_item"), (briefing, "briefing"), (ticket, "ticket")]


def outcome_of(function: Any, name: str, event: dict[str, Any], milliseconds: int) -> Notes:  # noqa: ANN401 - a function
    """Send an event to a new container, and return what the log will say of it."""
    notes: list[Notes] = []
    token = listener.set(notes.append)
    try:
        function.fresh()(event, Context(f"local_{name}", milliseconds))
    finally:
        listener.reset(token)
    return notes[0]


@pytest.fixture(scope="module")
def _dialects() -> Iterator[None]:
    with deployed(MCP_DIALECTS=DIALECTS):
        yield


@pytest.mark.usefixtures("_dialects")
@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(events_of_any_version(), st.sampled_from(FUNCTIONS))
def test_no_request_of_a_client_counts_as_a_crash_or_a_failure(
    sent: tuple[dict[str, Any], int], function: tuple[Any, str]
) -> None:
    notes = outcome_of(*function, *sent)
    assert notes.outcome in {"complete", "input_required", "shed", "refused"}, (notes.reason, notes.place)
