"""A protocol fuzzer: wounded requests to a healthy server get an error with a right code and the same id, never a 5xx.

What was wounded stays known, so that the answer can be judged: if the id survived, the answer must bear it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functions.briefing.app import handler as briefing
from functions.mcp.app import handler as front_door
from functions.ticket.app import handler as ticket
from functions.update_work_item.app import handler as update_work_item
from mcp_functions.testing import Context, Conversation
from tests import wire
from tests.legacy import judging

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
    """Seal the true states beforehand: KMS draws lots, and while hypothesis draws nobody else may."""
    originals()


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Any, dict[str, Any], object]:
    """One valid request with one to three wounds; and its id, or ... where that was hit too."""
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
def test_a_wounded_request_gets_an_error_that_names_it_and_never_a_server_error(
    case: tuple[Any, dict[str, Any], object],
) -> None:
    handler, event, id_ = case
    # a container of its own: one that has seen three keys of nobody from one caller opens no more of them for a while
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
