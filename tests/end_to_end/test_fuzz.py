"""A protocol fuzzer: damaged requests to a healthy server get an error with a correct code and id, never a 5xx.

The fuzzer records each damage, so that it can judge the response: if the id is intact, the response must repeat it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from functions.briefing.app import handler as briefing
from functions.mcp.app import handler as front_door
from functions.ticket.app import handler as ticket
from functions.update_work_item.app import handler as update_work_item
from mcp_functions.observability import Notes, listener
from mcp_functions.testing import Context, Conversation, deployed
from tests.legacy import judging
from tests.support import wire

STATUS = {-32700: {400}, -32600: {400, 413, 415}, -32601: {404}, -32602: {200, 400}, -32020: {400}, -32021: {400}}
STATUS |= {-32022: {400}}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def originals() -> list[tuple[Any, dict[str, Any]]]:
    """Write valid requests of every kind, those of a second round with a true state among them."""
    resolve = Conversation(update_work_item).call(workItemId=1, fields={"System.State": "Resolved"})
    resolve.accept(resolution={"resolution": "Duplicate"})
    get = Conversation(briefing).call(topic="x").accept(audience={"audience": "engineers"})
    read = Conversation(ticket).read("tickets://A/1").decline()
    calls = [(update_work_item, resolve.rounds), (briefing, get.rounds), (ticket, read.rounds)]
    events = [(handler, event) for handler, rounds in calls for event, _response in rounds]
    lists = ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"]
    return events + [(front_door, wire.event(wire.message(method))) for method in lists]


@pytest.fixture(scope="module", autouse=True)
def _prepared() -> None:
    """Seal the valid states beforehand, because moto's KMS uses `random`, which Hypothesis must control alone."""
    originals()


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Any, dict[str, Any], object]:
    """One valid request with one to three kinds of damage; and its id, or ... if the id was damaged too."""
    handler, event = draw(st.sampled_from(originals()))
    event = json.loads(json.dumps(event))
    message = json.loads(event["body"])
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["header", "meta", "params", "member", "arguments", "body"]))
        match kind:
            case "header":
                name = draw(st.sampled_from(sorted(event["headers"])))
                value = draw(st.none() | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30))
                event["headers"] = (
                    {**event["headers"], name: value} if value is not None else _without(event["headers"], name)
                )
            case "body":
                at = draw(st.integers(0, len(event["body"]) - 1))
                junk = draw(st.text(max_size=3) | st.sampled_from(['"', "{", "]", "\\u0000", "\ud800"]))
                event["body"] = event["body"][:at] + junk + event["body"][at + draw(st.integers(0, 3)) :]
                return handler, event, ...
            case _:
                place = _place(message, kind)
                if isinstance(place, dict):
                    key = (
                        draw(st.sampled_from(sorted(place)) | st.text(max_size=6))
                        if place
                        else draw(st.text(max_size=6))
                    )
                    place[key] = draw(anything)
                    if draw(st.booleans()):
                        del place[key]
        event["body"] = json.dumps(message)
    id_ = message.get("id", ...)
    return handler, event, id_ if isinstance(id_, str | int) and not isinstance(id_, bool) else ...


def _without(members: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in members.items() if key != name}


def _place(message: dict[str, Any], kind: str) -> object:
    params = message.get("params", {})
    if kind == "member" or not isinstance(params, dict):
        return message
    return {"params": params, "meta": params.get("_meta"), "arguments": params.get("arguments")}[kind]


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(mutated())
def test_a_damaged_request_gets_an_error_with_its_id_and_never_a_server_error(
    case: tuple[Any, dict[str, Any], object],
) -> None:
    handler, event, id_ = case
    # a new container, because one refuses more forged keys after three from one caller
    response = handler.fresh()(event, Context("local-update_work_item"))
    assert response["statusCode"] < 500, response
    assert "Traceback" not in response["body"]
    if not response["body"]:
        assert response["statusCode"] in (202, 403, 405)
        return
    body = wire.messages(response)[-1]
    if id_ is not ...:
        assert body["id"] == id_
    if "error" in body and not judging.is_earlier(event, response):
        assert response["statusCode"] in STATUS[body["error"]["code"]], body


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"])
def test_only_post_is_answered(method: str) -> None:
    event = wire.event(wire.message("tools/list"))
    event["requestContext"]["http"]["method"] = method
    response = front_door(event, Context("local-mcp"))
    assert (response["statusCode"], response["headers"]["allow"]) == (405, "POST")


# ---- Every revision and every dialect: no request counts as a failure of the server

DIALECTS = "sep-1685,sep-1858,sep-2322-tasks"
REVISIONS = [None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "x"}}
OF_MARCH = {"content-type": "application/json", "mcp-protocol-version": "2025-03-26"}
CALL = {"name": "update_work_item", "arguments": {"workItemId": 1, "fields": {"System.State": "Resolved"}}}
ANSWERED = {"result": {"action": "accept", "content": {"resolution": "Fixed"}}}
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
    """One message of any era: a request, a notification, a response, or one of these with wounds."""
    method, params = draw(st.sampled_from(METHODS))
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method, "params": json.loads(json.dumps(params))}
    if draw(st.booleans()):
        message["params"]["_meta"] = wire.message("tools/list")["params"]["_meta"]
    if draw(st.integers(0, 4)) == 0:
        message = {"jsonrpc": "2.0", "id": "ks1.x", **ANSWERED}
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.sampled_from([message, message.get("params")]))
        if isinstance(place, dict) and place:
            name = draw(st.sampled_from(sorted(place)))
            if draw(st.booleans()):
                place[name] = draw(anything)
            else:
                del place[name]
    return message


@st.composite
def sent_in_any_era(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    """One event, and the milliseconds that Lambda leaves for it."""
    body = draw(messages() | st.lists(messages(), min_size=1, max_size=3) | anything)
    for number, each in enumerate(body if isinstance(body, list) else []):
        if isinstance(each, dict) and each.get("id") == 1:
            each["id"] = number  # otherwise responses could not be matched to requests
    text = json.dumps(body)
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.text(max_size=3)) + text[at + 1 :]
    single = body if isinstance(body, dict) else {}
    params = single.get("params")
    named = params.get("name", params.get("uri")) if isinstance(params, dict) else None
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": draw(st.sampled_from(REVISIONS) | st.text(max_size=5)),
        "mcp-session-id": draw(st.none() | st.just("ks1.x") | st.text(max_size=5)),
        "last-event-id": draw(st.none() | st.just("ks1.x")),
        "mcp-method": single.get("method") if draw(st.booleans()) else None,
        "mcp-name": named if draw(st.booleans()) else None,
    }
    written = {name: value for name, value in headers.items() if isinstance(value, str)}
    how = draw(st.sampled_from(["POST"] * 6 + ["GET", "DELETE"]))
    return wire.event(text, headers=written, http_method=how), draw(st.sampled_from([29_000, 29_000, 900]))


EVENTS = [(update_work_item, "update_work_item"), (briefing, "briefing"), (ticket, "ticket")]
BATCHES = ['[{"jsonrpc":"2.0","id":1,"method":"initialize"}]', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]']


def test_no_request_of_a_client_counts_as_a_crash_or_a_failure() -> None:
    @settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(sent_in_any_era(), st.sampled_from(EVENTS))
    @example((wire.event(BATCHES[0], headers=OF_MARCH), 29_000), EVENTS[0])
    @example((wire.event(BATCHES[1], headers=OF_MARCH), 900), EVENTS[0])  # it comes too late to be run
    def law(case: tuple[dict[str, Any], int], function: tuple[Any, str]) -> None:
        (event, milliseconds), (handler, name) = case, function
        heard: list[Notes] = []
        listening = listener.set(heard.append)
        try:
            handler.fresh()(event, Context(f"local-{name}", milliseconds))
        finally:
            listener.reset(listening)
        (notes,) = heard
        if event["body"] in BATCHES and event["headers"] == OF_MARCH:
            assert notes.outcome == "refused"
        assert notes.outcome in {"complete", "input_required", "shed", "refused"}, (notes.reason, notes.place)

    with deployed(MCP_DIALECTS=DIALECTS):
        law()
