"""The state of a round (envelope.md §9): a client may return it only with the same request, and only for some time.

Each round of a conversation seals a state, and the next round opens it. Here an own codec of two functions replaces the
encryption: it writes the state in hexadecimal. So a test can read what is sealed, and can forge any claim in it.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_functions.protocol.errors import (
    DeveloperError,
    InvalidRequestState,
    Misconfigured,
    StateTooLarge,
    TemporarilyUnavailable,
    ToolError,
)
from mcp_functions.protocol.messages import Principal
from mcp_functions.seal.binding import Binding, bind_request, principal_digest
from mcp_functions.seal.claims import Claims
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.envelope import STATE_LABEL, Envelope
from mcp_functions.seal.request_state import RequestStates
from tests.seal.refusals import assert_refused, replace_character
from tests.support.strict_kms import START, Clock, StrictKms, make_keys

AUDIENCE = "demo/update_work_item/prod"
ALICE = Principal("https://idp.example", "alice", "console")
PARAMS = {"name": "update_work_item", "arguments": {"id": 4522, "fields": {"state": "Resolved"}}}
REQUEST = bind_request(AUDIENCE, "tools/call", PARAMS, ALICE)
LIFETIME, HOUR, DAY = 600, 3600, 86_400  # seconds
START_MS = int(START * 1000)


class HexCodec:
    """A codec as an author may write it, but without encryption."""

    def seal(self, payload: bytes) -> str:
        return payload.hex()

    def unseal(self, token: str) -> bytes:
        return bytes.fromhex(token)


def make_states(clock: Clock | None = None, **limits: Any) -> RequestStates:  # noqa: ANN401
    return RequestStates(CodecAdapter(HexCodec(), STATE_LABEL), now=clock or Clock(), **limits)


def seal(states: RequestStates, binding: Binding = REQUEST, previous: Claims | None = None) -> str:
    """Seal a state without questions and answers."""
    return states.seal(binding, previous, asked={}, record={})


def read_claims(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = json.loads(bytes.fromhex(token))
    return claims


def write_claims(claims: dict[str, Any]) -> str:
    return json.dumps(claims).encode().hex()


# A conversation


def test_the_next_round_opens_what_a_round_sealed() -> None:
    states, record = make_states(), {"answers": {"a": 1}, "steps": [None, True, 1.5]}
    claims = states.open(states.seal(REQUEST, None, asked={"resolution": "fp"}, record=record), REQUEST)
    assert claims == Claims(
        binding=REQUEST,
        issued=START_MS,
        expires=START_MS + LIFETIME * 1000,
        flow_deadline=START_MS + HOUR * 1000,
        flow=claims.flow,
        round=1,
        asked={"resolution": "fp"},
        record=record,
    )


def test_the_second_round_keeps_the_id_and_the_deadline_of_the_conversation() -> None:
    clock = Clock()
    states = make_states(clock)
    first = states.open(seal(states), REQUEST)
    clock.advance(60)
    second = states.open(seal(states, previous=first), REQUEST)
    assert second.flow == first.flow
    assert second.flow_deadline == first.flow_deadline
    assert second.issued == first.issued + 60_000
    assert second.round == 2


def test_every_conversation_has_an_id_of_its_own() -> None:
    states = make_states()
    ids = {states.open(seal(states), REQUEST).flow for _ in range(100)}
    assert len(ids) == 100
    assert {len(flow) for flow in ids} == {22}


def test_the_sealed_document_has_the_claims_of_the_specification() -> None:
    flow = "AAAAAAAAAAAAAAAAAAAAAA"
    token = make_states().seal(REQUEST, None, asked={"q": "fp"}, record={"done": [1]}, flow=flow)
    assert bytes.fromhex(token).decode() == (
        '{"v":1,"aud":"demo/update_work_item/prod","m":"tools/call","t":"update_work_item",'
        f'"a":"{REQUEST.arguments}","p":"{REQUEST.principal}",'
        '"iat":1767225600000,"exp":1767226200000,"fx":1767229200000,'
        f'"f":"{flow}","r":1,"q":{{"q":"fp"}},"s":{{"done":[1]}}}}'
    )


@pytest.mark.parametrize("text", ['{"rows":[1]}', "", "two\nlines", "\ud800"], ids=ascii)
def test_the_text_that_a_function_keeps_follows_the_document_unchanged(text: str) -> None:
    states, record = make_states(), {"state": text, "sheds": 1}
    token = states.seal(REQUEST, None, asked={}, record=record)
    document, _line_feed, kept = bytes.fromhex(token).decode("utf-8", "surrogatepass").partition("\n")
    assert json.loads(document)["s"] == {"sheds": 1}
    assert kept == text
    assert states.open(token, REQUEST).record == record


def test_a_chinese_character_of_three_bytes_takes_four_characters_of_the_token() -> None:
    kms = StrictKms()
    states = RequestStates(Envelope(make_keys(kms, kms.create_key())), now=Clock())
    token = states.seal(REQUEST, None, asked={}, record={"text": "状" * 1000})
    assert len(token) - len(seal(states)) < 4050


ODD_TEXTS = ["\ud800", "\udfff tail", "\ud83d" + "\ude00", "\U0001f600", "\0\x1f\x7f\u2028", '"\\/', "é", "e\u0301"]


@pytest.mark.parametrize("text", ODD_TEXTS, ids=ascii)
def test_every_text_comes_back_even_a_lone_surrogate(text: str) -> None:
    states = make_states()
    binding = bind_request(AUDIENCE, "resources/read", {"uri": f"x:{text}"}, Principal("i", text, "c"))
    claims = states.open(states.seal(binding, None, asked={text: text}, record={text: [text]}), binding)
    assert claims.asked == {text: text}
    assert claims.record == {text: [text]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text() | st.just("state"), JSON, max_size=4))
def test_every_json_record_comes_back(record: dict[str, Any]) -> None:
    states = make_states()
    opened = states.open(states.seal(REQUEST, None, asked={}, record=record), REQUEST).record
    assert json.dumps(opened, sort_keys=True) == json.dumps(record, sort_keys=True)  # tells 1, 1.0 and True apart


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, object(), {1, 2}, b"bytes", 10**5000], ids=type)
def test_a_record_that_is_not_json_is_the_developers_error(value: object) -> None:
    with pytest.raises(DeveloperError, match="the state is not JSON: keep str, int"):
        make_states().seal(REQUEST, None, asked={}, record={"secret": value})


def nest(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_a_record_of_200_levels_comes_back() -> None:
    states, record = make_states(), {"value": nest(199)}
    assert states.open(states.seal(REQUEST, None, asked={}, record=record), REQUEST).record == record


@pytest.mark.parametrize("depth", [200, 900, 100_000])
def test_a_record_of_more_than_200_levels_is_the_developers_error(depth: int) -> None:
    with pytest.raises(DeveloperError):
        make_states().seal(REQUEST, None, asked={}, record={"value": nest(depth)})


def test_brackets_in_a_text_are_no_levels() -> None:
    states, record = make_states(), {"text": "[{" * 500}
    assert states.open(states.seal(REQUEST, None, asked={}, record=record), REQUEST).record == record
    assert bind_request(AUDIENCE, "tools/call", {"name": "t", "arguments": record}, ALICE)


# Another request, or another person

OTHER_REQUESTS = {
    "audience": REQUEST._replace(audience="demo/get_weather/prod"),
    "method": REQUEST._replace(method="prompts/get"),
    "target": bind_request(AUDIENCE, "tools/call", {**PARAMS, "name": "delete_work_item"}, ALICE),
    "arguments": bind_request(AUDIENCE, "tools/call", {**PARAMS, "arguments": {"id": 4523}}, ALICE),
}
OTHER_PEOPLE = {
    "another subject": Principal("https://idp.example", "mallory", "console"),
    "another issuer": Principal("https://idp.evil", "alice", "console"),
    "another client": Principal("https://idp.example", "alice", "other"),
    "the same letters, cut elsewhere": Principal("https://idp.examplea", "lice", "console"),
    "nobody": None,
    "empty": Principal("", "", ""),
}


@pytest.mark.parametrize("part", OTHER_REQUESTS)
def test_a_state_of_another_request_is_refused_both_ways(part: str) -> None:
    states, other = make_states(), OTHER_REQUESTS[part]
    with assert_refused(part):
        states.open(seal(states, REQUEST), other)
    with assert_refused(part):
        states.open(seal(states, other), REQUEST)


@pytest.mark.parametrize("person", OTHER_PEOPLE)
def test_a_state_of_somebody_else_is_refused_both_ways(person: str) -> None:
    states, other = make_states(anonymous=True), bind_request(AUDIENCE, "tools/call", PARAMS, OTHER_PEOPLE[person])
    with assert_refused("principal"):
        states.open(seal(states, REQUEST), other)
    with assert_refused("principal"):
        states.open(seal(states, other), REQUEST)


def test_without_a_principal_nothing_is_sealed_or_opened_unless_the_server_is_anonymous() -> None:
    nobody = bind_request(AUDIENCE, "tools/call", PARAMS, None)
    anonymous = make_states(anonymous=True)
    token = seal(anonymous, nobody)
    assert anonymous.open(token, nobody)
    with pytest.raises(Misconfigured) as sealing:
        seal(make_states(), nobody)
    with pytest.raises(Misconfigured):
        make_states().open(token, nobody)
    assert "anonymous=True" in str(sealing.value.reason)


def test_the_digest_of_a_principal_never_changes_and_does_not_show_the_name() -> None:
    assert principal_digest(ALICE) == "KGaz2qQ3aYTYZAUzQ-nQAy9FF_p6sc05yDnh_NhBNS4"
    assert principal_digest(None) is None


def test_meta_and_answers_may_change_between_rounds() -> None:
    params = {**PARAMS, "_meta": {"progressToken": 7}, "inputResponses": {"a": {}}, "requestState": "x"}
    assert bind_request(AUDIENCE, "tools/call", params, ALICE) == REQUEST


@pytest.mark.parametrize(("method", "target"), [("resources/read", "x:1"), ("prompts/get", "p"), ("tools/call", "p")])
def test_a_resource_is_bound_by_its_uri_and_the_others_by_name(method: str, target: str) -> None:
    assert bind_request(AUDIENCE, method, {"uri": "x:1", "name": "p"}, ALICE).target == target


# Time and rounds


@pytest.mark.parametrize("lifetime", [LIFETIME, 3 * DAY])
def test_a_state_ends_with_its_lifetime_to_the_millisecond(lifetime: int) -> None:
    clock = Clock()
    states = make_states(clock, lifetime_seconds=lifetime)
    token = seal(states)
    clock.at = START + lifetime - 0.001
    assert states.open(token, REQUEST)
    clock.at = START + lifetime
    with assert_refused("expired"):
        states.open(token, REQUEST)


def test_with_a_lifetime_of_a_day_each_of_six_answers_may_take_a_day() -> None:
    clock = Clock()
    states = make_states(clock, lifetime_seconds=DAY)
    claims = None
    for _ in range(6):
        token = seal(states, previous=claims)
        clock.advance(DAY - 1)
        claims = states.open(token, REQUEST)


def test_a_conversation_ends_at_its_deadline_however_often_it_is_renewed() -> None:
    clock = Clock()
    states = make_states(clock)
    claims = None
    for _ in range(8):
        token = seal(states, previous=claims)
        claims = states.open(token, REQUEST)
        clock.advance(500)
    clock.at = START + HOUR - 0.001
    assert states.open(token, REQUEST)
    clock.at = START + HOUR
    with assert_refused("expired"):
        states.open(token, REQUEST)
    with pytest.raises(ToolError, match="used its time"):
        seal(states, previous=claims)


@pytest.mark.parametrize("shorter", [LIFETIME, DAY - 1])
def test_a_shorter_lifetime_takes_effect_at_once(shorter: int) -> None:
    token = seal(make_states(lifetime_seconds=DAY))
    with assert_refused("lifetime"):
        make_states(lifetime_seconds=shorter).open(token, REQUEST)


def test_a_longer_lifetime_accepts_earlier_states() -> None:
    assert make_states(lifetime_seconds=DAY).open(seal(make_states()), REQUEST)


def test_a_state_from_the_future_is_refused_beyond_a_minute() -> None:
    clock = Clock()
    states = make_states(clock)
    token = seal(states)
    clock.advance(-60)
    assert states.open(token, REQUEST)
    clock.advance(-0.001)
    with assert_refused("issued_future"):
        states.open(token, REQUEST)


def test_a_conversation_continues_if_each_clock_is_a_minute_behind_the_last() -> None:
    containers = [make_states(Clock(START - 59 * number)) for number in range(4)]
    claims = None
    for container, next_container in pairwise(containers):
        claims = next_container.open(seal(container, previous=claims), REQUEST)


def test_a_container_whose_clock_is_behind_seals_nothing_that_others_refuse() -> None:
    punctual, behind = make_states(Clock()), make_states(Clock(START - 59))
    claims = behind.open(seal(punctual), REQUEST)
    assert punctual.open(seal(behind, previous=claims), REQUEST).round == 2


def test_a_conversation_has_at_most_sixteen_states() -> None:
    states = make_states()
    claims = None
    for _ in range(16):
        claims = states.open(seal(states, previous=claims), REQUEST)
    assert claims is not None
    assert claims.round == 16
    with pytest.raises(ToolError, match="used its 16 rounds"):
        seal(states, previous=claims)


# Forged claims

MALFORMED_CLAIMS: dict[str, dict[str, object]] = {
    "another version": {"v": 2},
    "a version that is true": {"v": True},
    "a version that is a float": {"v": 1.0},
    "a text as version": {"v": "1"},
    "a float as time": {"exp": START * 1000 + 1.0},
    "true as round": {"r": True},
    "a text as time": {"iat": "1767225600000"},
    "null as deadline": {"fx": None},
    "a number as audience": {"aud": 1},
    "false as principal": {"p": False},
    "a list of questions": {"q": ["a"]},
    "a question without fingerprint": {"q": {"a": None}},
    "a text as record": {"s": "{}"},
    "no record": {"s": None},
    "a claim too many": {"extra": 1},
}


@pytest.mark.parametrize("name", MALFORMED_CLAIMS)
def test_a_malformed_claim_is_refused_even_in_an_authentic_state(name: str) -> None:
    states = make_states()
    claims = read_claims(seal(states)) | MALFORMED_CLAIMS[name]
    with assert_refused("claims"):
        states.open(write_claims(claims), REQUEST)


@pytest.mark.parametrize("name", ["v", "aud", "m", "t", "a", "p", "iat", "exp", "fx", "f", "r", "q", "s"])
def test_every_claim_is_required(name: str) -> None:
    states = make_states()
    claims = read_claims(seal(states))
    del claims[name]
    with assert_refused("claims"):
        states.open(write_claims(claims), REQUEST)


@pytest.mark.parametrize(
    "text", [b"", b"null", b"[]", b"1", b"{", b"\xff", b"[" * 100_000, b"1" * 5000, b'{"v":1}', b'"v"'], ids=repr
)
def test_a_payload_that_is_no_document_of_claims_is_refused(text: bytes) -> None:
    with assert_refused("claims"):
        make_states().open(text.hex(), REQUEST)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        pytest.param("exp", START_MS, "lifetime", id="ends when it begins"),
        pytest.param("exp", START_MS - 1, "lifetime", id="ends before it begins"),
        pytest.param("exp", START_MS + LIFETIME * 1000 + 1, "lifetime", id="lives too long"),
        pytest.param("iat", START_MS - 1, "lifetime", id="lives too long, for it began earlier"),
        pytest.param("fx", START_MS + LIFETIME * 1000 - 1, "lifetime", id="ends after the conversation"),
        pytest.param("fx", START_MS + HOUR * 1000 + 60_001, "lifetime", id="the conversation ends too late"),
        pytest.param("r", 0, "round", id="round 0"),
        pytest.param("r", -1, "round", id="round -1"),
        pytest.param("r", 17, "round", id="round 17"),
    ],
)
def test_a_time_or_round_that_is_never_sealed_is_refused(name: str, value: int, reason: str) -> None:
    states = make_states()
    claims = read_claims(seal(states)) | {name: value}
    with assert_refused(reason):
        states.open(write_claims(claims), REQUEST)


def test_the_end_of_a_conversation_may_be_a_minute_later_than_this_containers_clock_allows() -> None:
    states = make_states()
    latest = START_MS + HOUR * 1000 + 60_000  # the clock of another container may be a minute ahead
    assert states.open(write_claims(read_claims(seal(states)) | {"fx": latest}), REQUEST)


# An author's own codec


class FailingCodec(HexCodec):
    """A codec that raises an error, or returns a value that is no bytes."""

    def __init__(self, outcome: object) -> None:
        self.outcome = outcome

    def unseal(self, token: str) -> bytes:
        del token
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome  # type: ignore[return-value]


@pytest.mark.parametrize(
    "outcome", [ValueError("secret"), KeyError("k"), RuntimeError(), TypeError(), OSError(), None, "text", 1], ids=repr
)
def test_any_failure_of_an_own_codec_is_a_bad_state(outcome: object) -> None:
    states = RequestStates(CodecAdapter(FailingCodec(outcome), STATE_LABEL), now=Clock())
    with assert_refused("codec"):
        states.open("token", REQUEST)


@pytest.mark.parametrize("error", [TemporarilyUnavailable("own"), Misconfigured("own"), InvalidRequestState("own")])
def test_the_three_errors_of_a_seal_pass_through_from_an_own_codec(error: Exception) -> None:
    states = RequestStates(CodecAdapter(FailingCodec(error), STATE_LABEL), now=Clock())
    with pytest.raises(type(error)) as error_info:
        states.open("token", REQUEST)
    assert error_info.value is error


def test_an_own_codec_gets_the_token_without_the_caller() -> None:
    states = make_states()
    assert states.open(seal(states), REQUEST, caller="alice")  # `HexCodec.unseal` takes one argument


# With the encrypting envelope


def start_container(kms: StrictKms, arn: str, clock: Clock, lifetime: int = LIFETIME) -> RequestStates:
    envelope = Envelope(make_keys(kms, arn, clock=clock), max_age=lifetime)
    return RequestStates(envelope, now=clock, lifetime_seconds=lifetime)


def test_a_failed_unwrap_is_charged_to_the_caller_who_is_named(kms: StrictKms, arn: str, clock: Clock) -> None:
    token, container = seal(start_container(kms, arn, clock)), start_container(kms, arn, clock)
    for number in range(3):
        damaged = replace_character(token, 130 + number)  # in the wrapped key
        with assert_refused("wrapped_key"):
            container.open(damaged, REQUEST, caller="mallory")
    with pytest.raises(TemporarilyUnavailable):
        container.open(token, REQUEST, caller="mallory")
    assert container.open(token, REQUEST, caller="alice")


def test_a_state_for_three_days_opens_on_the_last_day_in_a_new_container(
    kms: StrictKms, arn: str, clock: Clock
) -> None:
    clock.at = START + 899  # the last second in which the data key is of the current epoch
    token = seal(start_container(kms, arn, clock, 3 * DAY))
    clock.advance(3 * DAY - 0.001)
    assert start_container(kms, arn, clock, 3 * DAY).open(token, REQUEST)


def test_a_record_over_the_limit_of_a_token_is_refused(kms: StrictKms, arn: str, clock: Clock) -> None:
    with pytest.raises(StateTooLarge):
        start_container(kms, arn, clock).seal(REQUEST, None, asked={}, record={"x": "y" * 30_000})
