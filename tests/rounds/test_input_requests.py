"""Input requests: shapes, required capabilities, and the fingerprint that binds an answer to its question."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_functions import CreateMessageRequest, ElicitRequest, ListRootsRequest
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.rounds.input_requests import fingerprint, missing_capabilities, repeat_request
from tests.support import wire


class Name(BaseModel):
    """A form with two fields."""

    first_name: str
    kind: Literal["a", "b"] = "a"


FORM = ElicitRequest("Who?", Name).wire()
PAGE = ElicitRequest.url("Sign in", "https://x.example/y").wire()
SAMPLE = CreateMessageRequest("Hello", max_tokens=10).wire()
WITH_TOOLS = CreateMessageRequest("Hello", 10, {"tools": []}).wire()
WITH_CHOICE = CreateMessageRequest("Hello", 10, {"toolChoice": {"mode": "none"}}).wire()
ROOTS = ListRootsRequest().wire()
EVERY: list[Any] = [FORM, PAGE, SAMPLE, WITH_TOOLS, WITH_CHOICE, ROOTS]


@pytest.mark.parametrize("request_", EVERY)
def test_the_official_types_take_every_request(request_: Any) -> None:  # noqa: ANN401
    result = {
        "resultType": "input_required",
        "inputRequests": {"key": request_},
        "_meta": {wire.PREFIX + "serverInfo": {"name": "s", "version": "1"}},
    }
    for method in wire.NAMED.keys() - wire.OF_TASKS.keys():
        wire.check({"jsonrpc": "2.0", "id": 1, "result": result}, method)


def test_a_form_is_message_and_schema() -> None:
    assert FORM == {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Who?",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "first_name": {"type": "string"},
                    "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
                },
                "required": ["first_name"],
            },
        },
    }


def test_a_form_is_written_in_camel_case_on_demand() -> None:
    written: Any = ElicitRequest("Who?", Name).wire(camel_case=True)
    assert written["params"]["requestedSchema"]["required"] == ["firstName"]


def test_a_page_is_message_and_url_without_an_id() -> None:
    assert PAGE == {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Sign in", "url": "https://x.example/y"},
    }


@pytest.mark.parametrize("url", ["", "/relative", "javascript:alert(1)", "x.example", "file:///etc/passwd"])
def test_a_page_has_an_absolute_url(url: str) -> None:
    with pytest.raises(DeveloperError, match="an absolute https:// URL"):
        ElicitRequest.url("Sign in", url).wire()


def test_a_string_is_one_message_of_the_user() -> None:
    assert SAMPLE == {
        "method": "sampling/createMessage",
        "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}], "maxTokens": 10},
    }


def test_messages_and_options_are_passed_on() -> None:
    said = [{"role": "assistant", "content": {"type": "text", "text": "Hi"}}]
    written: Any = CreateMessageRequest(said, 5, {"temperature": 0.5, "systemPrompt": "Be brief"}).wire()
    assert written["params"] == {"messages": said, "temperature": 0.5, "systemPrompt": "Be brief", "maxTokens": 5}


def test_roots_are_asked_for_without_params_of_their_own() -> None:
    assert ROOTS == {"method": "roots/list", "params": {}}


@pytest.mark.parametrize("request_", EVERY)
def test_no_request_has_an_id(request_: Any) -> None:  # noqa: ANN401
    assert request_.keys() == {"method", "params"}


def test_a_fingerprint_is_22_url_safe_characters() -> None:
    fingerprint_ = fingerprint(FORM)
    assert len(fingerprint_) == 22
    assert fingerprint_.replace("-", "").replace("_", "").isalnum()


def test_every_kind_of_question_has_its_expected_fingerprint() -> None:
    again = [
        ElicitRequest("Who? ", Name).wire(),
        ElicitRequest("Who?", Name).wire(camel_case=True),
        ElicitRequest.url("Sign in", "https://x.example/z").wire(),
        CreateMessageRequest("Hello", max_tokens=11).wire(),
    ]
    assert len({fingerprint(request) for request in [*EVERY, *again]}) == len(EVERY) + len(again)


json_objects: Any = st.dictionaries(
    st.text(max_size=4),
    st.recursive(
        st.integers() | st.text(max_size=4) | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


class Offices(BaseModel):
    """A form whose words are none of ASCII."""

    street: Literal["Mühlgasse", 'ß"\\'] = "Mühlgasse"


def test_a_fingerprint_stays_the_same_for_states_in_flight() -> None:
    assert fingerprint(ElicitRequest("Wohin? → Zürich", Offices).wire()) == "STa3AdogeQe_6RNudM5nkQ"


def reversed_keys(value: Any) -> Any:  # noqa: ANN401 - JSON is any value
    match value:
        case dict():
            return {key: reversed_keys(value[key]) for key in reversed(value)}
        case list():
            return [reversed_keys(item) for item in value]
    return value


@given(json_objects)
def test_a_fingerprint_does_not_depend_on_the_order_of_keys(params: dict[str, Any]) -> None:
    request: Any = {"method": "x", "params": params}
    assert fingerprint(request) == fingerprint(reversed_keys(request))


@given(json_objects, json_objects)
def test_different_questions_have_different_fingerprints(one: dict[str, Any], other: dict[str, Any]) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)  # not ==: to Python, True is 1
    requests: Any = [{"method": "x", "params": one}, {"method": "x", "params": other}]
    assert (fingerprint(requests[0]) == fingerprint(requests[1])) is same


def test_a_form_asked_again_states_the_reason_and_keeps_its_schema() -> None:
    again: Any = repeat_request(FORM, "first_name should be a string")
    assert again["params"]["message"] == "Who? (Please answer again: first_name should be a string.)"
    assert again["params"]["requestedSchema"] == FORM["params"]["requestedSchema"]
    assert FORM["params"]["message"] == "Who?"


@pytest.mark.parametrize("request_", [PAGE, SAMPLE, ROOTS])
def test_other_requests_are_repeated_unchanged(request_: Any) -> None:  # noqa: ANN401
    assert repeat_request(request_, "no") == request_


@pytest.mark.parametrize(
    ("request_", "declared"),
    [
        (FORM, {"elicitation": {}}),
        (FORM, {"elicitation": {"form": {}}}),
        (FORM, {"elicitation": {"form": {}, "url": {}}, "roots": {}}),
        (PAGE, {"elicitation": {"url": {}}}),
        (SAMPLE, {"sampling": {}}),
        (SAMPLE, {"sampling": {"tools": {}}}),
        (WITH_TOOLS, {"sampling": {"tools": {}}}),
        (WITH_CHOICE, {"sampling": {"tools": {}}}),
        (ROOTS, {"roots": {}}),
        (ROOTS, {"roots": {"listChanged": True}}),
    ],
)
def test_a_declared_capability_may_be_used(request_: Any, declared: dict[str, Any]) -> None:  # noqa: ANN401
    assert missing_capabilities([request_], declared) == {}


@pytest.mark.parametrize(
    ("request_", "declared", "lacking"),
    [
        (FORM, {}, {"elicitation": {}}),
        (FORM, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        (FORM, {"elicitation": None}, {"elicitation": {"form": {}}}),
        (FORM, {"sampling": {}, "roots": {}}, {"elicitation": {}}),
        (PAGE, {}, {"elicitation": {"url": {}}}),
        (PAGE, {"elicitation": {}}, {"elicitation": {"url": {}}}),
        (SAMPLE, {"sampling": True}, {"sampling": {}}),
        (WITH_TOOLS, {"sampling": {}}, {"sampling": {"tools": {}}}),
        (WITH_CHOICE, {"sampling": {}}, {"sampling": {"tools": {}}}),
        (ROOTS, {"elicitation": {}}, {"roots": {}}),
    ],
)
def test_a_missing_capability_is_named_as_an_object(
    request_: Any,  # noqa: ANN401
    declared: dict[str, Any],
    lacking: dict[str, Any],
) -> None:
    assert missing_capabilities([request_], declared) == lacking


subsets: Any = st.lists(st.sampled_from(EVERY), unique_by=id)
declarations: Any = st.fixed_dictionaries(
    {},
    optional={
        "elicitation": st.sampled_from([{}, {"form": {}}, {"url": {}}, {"form": {}, "url": {}}]),
        "sampling": st.sampled_from([{}, {"tools": {}}, {"context": {}}]),
        "roots": st.just({}),
    },
)


def together(declared: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {key: {**declared.get(key, {}), **more.get(key, {})} for key in {**declared, **more}}


@example(EVERY, {})
@given(subsets, declarations)
def test_a_client_that_declares_the_missing_capabilities_may_get_every_question(
    asked: list[Any], declared: dict[str, Any]
) -> None:
    named = missing_capabilities(asked, declared)
    if declared.get("elicitation") == {} and "elicitation" in named:
        declared = {**declared, "elicitation": {"form": {}}}  # the same thing in more words
    assert missing_capabilities(asked, together(declared, named)) == {}


def test_no_question_needs_no_capability() -> None:
    assert missing_capabilities([], {}) == {}
