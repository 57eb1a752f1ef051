"""Input requests, the questions as the client gets them: their members, fingerprints and required capabilities.

A fingerprint is a digest of the request. The state has it, so that an answer counts only for its own question.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from mcp_functions import Question, RootsQuestion, SampleQuestion
from mcp_functions.protocol.errors import DeveloperError
from mcp_functions.rounds.input_requests import fingerprint, missing_capabilities, with_reason
from tests.support import wire

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import ClientCapabilities, JSONObject


class Name(BaseModel):
    """A form with two fields."""

    first_name: str
    kind: Literal["a", "b"] = "a"


FORM = Question("Who?", Name).wire()
PAGE = Question.url("Sign in", "https://x.example/y").wire()
SAMPLE = SampleQuestion("Hello", max_tokens=10).wire()
SAMPLE_WITH_TOOLS = SampleQuestion("Hello", 10, {"tools": []}).wire()
SAMPLE_WITH_TOOL_CHOICE = SampleQuestion("Hello", 10, {"toolChoice": {"mode": "none"}}).wire()
ROOTS = RootsQuestion().wire()
EVERY_REQUEST = [FORM, PAGE, SAMPLE, SAMPLE_WITH_TOOLS, SAMPLE_WITH_TOOL_CHOICE, ROOTS]


@pytest.mark.parametrize("request_", EVERY_REQUEST)
def test_the_official_types_take_every_request(request_: JSONObject) -> None:
    result = {
        "resultType": "input_required",
        "inputRequests": {"key": request_},
        "_meta": {wire.PREFIX + "serverInfo": {"name": "s", "version": "1"}},
    }
    for method in wire.NAME_PARAMETERS.keys() - wire.TASK_METHODS.keys():
        wire.check({"jsonrpc": "2.0", "id": 1, "result": result}, method)


def test_a_form_has_a_message_and_a_schema() -> None:
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
    request_: Any = Question("Who?", Name).wire(camel_case=True)
    assert request_["params"]["requestedSchema"]["required"] == ["firstName"]


def test_a_page_is_message_and_url_without_an_id() -> None:
    assert PAGE == {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Sign in", "url": "https://x.example/y"},
    }


@pytest.mark.parametrize(
    "url", ["", "/a", "javascript:alert(1)", "x.example", "file:///etc/passwd", "http://x.example"]
)
def test_a_page_has_an_absolute_https_url(url: str) -> None:
    with pytest.raises(DeveloperError, match="an absolute https:// URL"):
        Question.url("Sign in", url).wire()


@pytest.mark.parametrize("url", ["http://localhost:8000/a", "http://127.0.0.1/a", "http://[::1]/a"])
def test_a_page_on_this_machine_may_have_an_http_url(url: str) -> None:
    assert Question.url("Sign in", url).wire()["params"]["url"] == url


def test_a_sample_of_a_string_has_one_message_of_the_user() -> None:
    assert SAMPLE == {
        "method": "sampling/createMessage",
        "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}], "maxTokens": 10},
    }


def test_options_of_a_sample_outside_json_break_a_rule() -> None:
    with pytest.raises(DeveloperError, match="JSON cannot carry the options of the question to the model"):
        SampleQuestion("Hello", 5, {"metadata": object()}).wire()


def test_messages_and_options_are_passed_on() -> None:
    messages = [{"role": "assistant", "content": {"type": "text", "text": "Hi"}}]
    request_: Any = SampleQuestion(messages, 5, {"temperature": 0.5, "systemPrompt": "Be brief"}).wire()
    assert request_["params"] == {"messages": messages, "temperature": 0.5, "systemPrompt": "Be brief", "maxTokens": 5}


TOOL_USE = {"type": "tool_use", "id": "u1", "name": "weather", "input": {}}
TOOL_RESULT = {"type": "tool_result", "toolUseId": "u1", "content": [{"type": "text", "text": "sunny"}]}
TEXT = {"type": "text", "text": "Well?"}
ONLY_RESULTS = "a message with a tool_result must hold tool_results alone"
RESULT_FOR_EACH_USE = "a message must have a tool_result for each tool_use of the message before"


@pytest.mark.parametrize("name", ["password", "api_key", "apiKey", "client_secret", "access_token", "private_key"])
def test_a_form_with_the_name_of_a_secret_is_refused(name: str) -> None:
    """Values of a form pass the client and may reach its model, so a secret needs a page."""
    form = type("Login", (BaseModel,), {"__annotations__": {name: str}})
    with pytest.raises(DeveloperError, match=f"{name}.*url"):
        Question("Who are you?", form).wire()


def test_a_form_with_the_type_of_a_secret_is_refused() -> None:
    class Login(BaseModel):
        word: SecretStr

    with pytest.raises(DeveloperError, match="word"):
        Question("Who are you?", Login).wire()


@pytest.mark.parametrize(
    "url", ["https://", "https:///path", "https://exa mple.com", "https://example.com/\n", "https:x"]
)
def test_a_url_that_a_browser_cannot_open_is_refused(url: str) -> None:
    with pytest.raises(DeveloperError, match="URL"):
        Question.url("Please sign in", url).wire()


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        pytest.param([TOOL_RESULT, TEXT], ONLY_RESULTS, id="a result with a text"),
        pytest.param(TEXT, RESULT_FOR_EACH_USE, id="a text before the result"),
        pytest.param({**TOOL_RESULT, "toolUseId": "u2"}, RESULT_FOR_EACH_USE, id="a result of another use"),
    ],
)
def test_a_sampling_request_whose_tool_use_has_no_result_is_refused(answer: object, rule: str) -> None:
    messages: list[Any] = [{"role": "assistant", "content": TOOL_USE}, {"role": "user", "content": answer}]
    with pytest.raises(DeveloperError, match=rule):
        SampleQuestion(messages, 10, {"tools": []}).wire()


def test_a_sampling_request_with_one_result_for_two_tool_uses_is_refused() -> None:
    messages: list[Any] = [
        {"role": "assistant", "content": [TOOL_USE, {**TOOL_USE, "id": "u2"}]},
        {"role": "user", "content": [TOOL_RESULT]},
    ]
    with pytest.raises(DeveloperError, match=RESULT_FOR_EACH_USE):
        SampleQuestion(messages, 10, {"tools": []}).wire()


def test_a_sampling_request_with_a_result_for_every_tool_use_is_sent() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": TEXT},
        {"role": "assistant", "content": [TEXT, TOOL_USE, {**TOOL_USE, "id": "u2"}]},
        {"role": "user", "content": [{**TOOL_RESULT, "toolUseId": "u2"}, TOOL_RESULT]},
        {"role": "assistant", "content": TEXT},
    ]
    params: Any = SampleQuestion(messages, 10, {"tools": []}).wire()["params"]
    assert params["messages"] == messages


def test_a_sampling_request_that_ends_with_a_tool_use_is_refused() -> None:
    with pytest.raises(DeveloperError, match="the last message must have no tool_use"):
        SampleQuestion([{"role": "assistant", "content": TOOL_USE}], 10, {"tools": []}).wire()


@pytest.mark.parametrize(
    "message",
    ["Hello", None, {"role": "system", "content": TEXT}, {"role": "user"}],
    ids=["text", "None", "role", "empty"],
)
def test_a_sampling_message_has_a_role_and_content(message: Any) -> None:  # noqa: ANN401
    with pytest.raises(DeveloperError, match="a message for the model is a SamplingMessage or a dict with role and"):
        SampleQuestion([message], 10).wire()


def test_roots_are_asked_for_without_params_of_their_own() -> None:
    assert ROOTS == {"method": "roots/list", "params": {}}


@pytest.mark.parametrize("request_", EVERY_REQUEST)
def test_no_request_has_an_id(request_: JSONObject) -> None:
    assert request_.keys() == {"method", "params"}


def test_a_fingerprint_is_22_url_safe_characters() -> None:
    fingerprint_ = fingerprint(FORM)
    assert len(fingerprint_) == 22
    assert fingerprint_.replace("-", "").replace("_", "").isalnum()


def test_different_requests_have_different_fingerprints() -> None:
    similar = [
        Question("Who? ", Name).wire(),
        Question("Who?", Name).wire(camel_case=True),
        Question.url("Sign in", "https://x.example/z").wire(),
        SampleQuestion("Hello", max_tokens=11).wire(),
    ]
    requests = [*EVERY_REQUEST, *similar]
    assert len({fingerprint(request) for request in requests}) == len(requests)


json_objects: Any = st.dictionaries(
    st.text(max_size=4),
    st.recursive(
        st.integers() | st.text(max_size=4) | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


class Address(BaseModel):
    """A form with characters outside of ASCII."""

    street: Literal["Mühlgasse", 'ß"\\'] = "Mühlgasse"


def test_a_fingerprint_stays_the_same_in_every_release() -> None:
    assert fingerprint(Question("Wohin? → Zürich", Address).wire()) == "STa3AdogeQe_6RNudM5nkQ"


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
def test_two_requests_have_one_fingerprint_if_their_json_is_the_same(first: Any, second: Any) -> None:  # noqa: ANN401
    is_same_json = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)  # to Python, True == 1
    first_fingerprint = fingerprint({"method": "roots/list", "params": first})
    second_fingerprint = fingerprint({"method": "roots/list", "params": second})
    assert (first_fingerprint == second_fingerprint) is is_same_json


def test_a_form_asked_again_states_the_reason_and_keeps_its_schema() -> None:
    request_: Any = with_reason(FORM, "first_name should be a string")
    assert request_["params"].pop("message") == "Who? (Please answer again: first_name should be a string.)"
    assert request_["params"].items() <= FORM["params"].items()


@pytest.mark.parametrize("request_", [PAGE, SAMPLE, ROOTS])
def test_other_requests_are_repeated_unchanged(request_: JSONObject) -> None:
    assert with_reason(request_, "no") == request_


@pytest.mark.parametrize(
    ("request_", "declared"),
    [
        (FORM, {"elicitation": {}}),
        (FORM, {"elicitation": {"form": {}}}),
        (FORM, {"elicitation": {"form": {}, "url": {}}, "roots": {}}),
        (PAGE, {"elicitation": {"url": {}}}),
        (SAMPLE, {"sampling": {}}),
        (SAMPLE, {"sampling": {"tools": {}}}),
        (SAMPLE_WITH_TOOLS, {"sampling": {"tools": {}}}),
        (SAMPLE_WITH_TOOL_CHOICE, {"sampling": {"tools": {}}}),
        (ROOTS, {"roots": {}}),
        (ROOTS, {"roots": {"listChanged": True}}),
    ],
)
def test_a_declared_capability_may_be_used(request_: JSONObject, declared: ClientCapabilities) -> None:
    assert missing_capabilities([request_], declared) == {}


@pytest.mark.parametrize(
    ("request_", "declared", "missing"),
    [
        (FORM, {}, {"elicitation": {}}),
        (FORM, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        (FORM, {"elicitation": None}, {"elicitation": {"form": {}}}),
        (FORM, {"sampling": {}, "roots": {}}, {"elicitation": {}}),
        (PAGE, {}, {"elicitation": {"url": {}}}),
        (PAGE, {"elicitation": {}}, {"elicitation": {"url": {}}}),
        (SAMPLE, {"sampling": True}, {"sampling": {}}),
        (SAMPLE_WITH_TOOLS, {"sampling": {}}, {"sampling": {"tools": {}}}),
        (SAMPLE_WITH_TOOL_CHOICE, {"sampling": {}}, {"sampling": {"tools": {}}}),
        (ROOTS, {"elicitation": {}}, {"roots": {}}),
    ],
)
def test_a_missing_capability_is_named_as_an_object(
    request_: JSONObject,
    declared: ClientCapabilities,
    missing: dict[str, Any],
) -> None:
    assert missing_capabilities([request_], declared) == missing


subsets_of_requests: Any = st.lists(st.sampled_from(EVERY_REQUEST), unique_by=id)
declared_capabilities: Any = st.fixed_dictionaries(
    {},
    optional={
        "elicitation": st.sampled_from([{"form": {}}, {"url": {}}, {"form": {}, "url": {}}]),
        "sampling": st.sampled_from([{}, {"tools": {}}, {"context": {}}]),
        "roots": st.just({}),
    },
)


@example(EVERY_REQUEST, {})
@given(subsets_of_requests, declared_capabilities)
def test_a_client_that_declares_the_missing_capabilities_may_get_every_question(
    requests: list[JSONObject], declared: ClientCapabilities
) -> None:
    missing = missing_capabilities(requests, declared)
    both: Any = {
        name: {**cast("Any", declared).get(name, {}), **missing.get(name, {})}
        for name in declared.keys() | missing.keys()
    }
    assert missing_capabilities(requests, both) == {}


def test_no_question_needs_no_capability() -> None:
    assert missing_capabilities([], {}) == {}
