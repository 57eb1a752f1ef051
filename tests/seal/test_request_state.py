"""Claims: the binding and the lifetime of a state, and every way to present it with the wrong request."""

from __future__ import annotations

import json
import math
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcp_functions.protocol.errors import (
    DeveloperError,
    InvalidParams,
    InvalidRequestState,
    Misconfigured,
    StateTooLarge,
    TemporarilyUnavailable,
    ToolError,
)
from mcp_functions.protocol.messages import Principal
from mcp_functions.seal.binding import Binding, bind_request, principal_digest
from mcp_functions.seal.canonical_json import write_canonical
from mcp_functions.seal.claims import ClaimReason, Claims
from mcp_functions.seal.codec_adapter import CodecAdapter
from mcp_functions.seal.envelope import STATE_LABEL as LABEL
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.request_state import RequestStates
from tests.support.strict_kms import START, Clock, StrictKms, make_keys

if TYPE_CHECKING:
    from collections.abc import Callable

ALICE = Principal("https://idp.example", "alice", "console")
CALL = {"name": "update_work_item", "arguments": {"id": 4522, "fields": {"state": "Resolved"}}}
AUDIENCE = "demo/update_work_item/prod"
HERE = bind_request(AUDIENCE, "tools/call", CALL, ALICE)
MINUTES, HOUR, DAY = 600, 3600, 86400


class Clear:
    """An author's own codec, as short as can be: what a test seals, it can read and forge."""

    def seal(self, payload: bytes) -> str:
        return payload.hex()

    def unseal(self, token: str) -> bytes:
        return bytes.fromhex(token)


def canonical(value: object) -> bytes:
    """Put the pieces of a canonical form together."""
    pieces: list[bytes] = []
    write_canonical(value, pieces.append)
    return b"".join(pieces)


def states(clock: Clock | None = None, **turned: Any) -> RequestStates:  # noqa: ANN401
    return RequestStates(CodecAdapter(Clear(), LABEL), now=clock or Clock(), **turned)


def claims_of(token: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes.fromhex(token).decode("utf-8", "surrogatepass"))
    return found


def forged(token: str, **changed: object) -> str:
    return json.dumps({**claims_of(token), **changed}).encode().hex()


def refused(open_it: Callable[[], object]) -> str:
    with pytest.raises(InvalidRequestState) as error:
        open_it()
    found = error.value
    wire = (found.status, found.code, found.message, json.dumps(found.data))
    assert wire == (400, -32602, "Invalid or expired requestState", '{"reason": "invalid_request_state"}')
    return str(found.reason)


# A conversation


def test_what_a_round_leaves_is_what_the_next_one_finds() -> None:
    clock = Clock()
    here = states(clock)
    token = here.seal(HERE, None, asked={"resolution": "fp"}, record={"answers": {"a": 1}, "steps": [None, True, 1.5]})
    clock.advance(60)
    opened = here.open(token, HERE)
    assert opened == Claims(
        binding=HERE,
        issued=int(START * 1000),
        expires=int(START * 1000) + MINUTES * 1000,
        flow_deadline=int(START * 1000) + HOUR * 1000,
        flow=opened.flow,
        round=1,
        asked={"resolution": "fp"},
        record={"answers": {"a": 1}, "steps": [None, True, 1.5]},
    )
    again = here.open(here.seal(HERE, opened, asked={}, record={}), HERE)
    assert (again.flow, again.round, again.flow_deadline) == (opened.flow, 2, opened.flow_deadline)
    assert again.issued == opened.issued + 60_000


def test_every_conversation_has_another_flow() -> None:
    here = states()
    flows = {here.open(here.seal(HERE, None, asked={}, record={}), HERE).flow for _ in range(100)}
    assert len(flows) == 100
    assert {len(flow) for flow in flows} == {22}


def test_the_document_has_the_claims_of_the_specification_and_no_white_space() -> None:
    token = states(rand=lambda size: b"\0" * size).seal(HERE, None, asked={"q": "fp"}, record={"done": [1]})
    assert bytes.fromhex(token).decode() == (
        '{"v":1,"aud":"demo/update_work_item/prod","m":"tools/call","t":"update_work_item",'
        f'"a":"{HERE.arguments_digest}","p":"{HERE.principal}",'
        '"iat":1767225600000,"exp":1767226200000,"fx":1767229200000,'
        '"f":"AAAAAAAAAAAAAAAAAAAAAA","r":1,"q":{"q":"fp"},"s":{"done":[1]}}'
    )


@pytest.mark.parametrize("text", ['{"rows":[1]}', "", "two\nlines", "\ud800"], ids=ascii)
def test_a_text_that_a_function_keeps_follows_the_document_as_it_is(text: str) -> None:
    here = states()
    token = here.seal(HERE, None, asked={}, record={"state": text, "sheds": 1})
    document, _line, kept = bytes.fromhex(token).decode("utf-8", "surrogatepass").partition("\n")
    assert (json.loads(document)["s"], kept) == ({"sheds": 1}, text)
    assert here.open(token, HERE).record == {"state": text, "sheds": 1}


def test_a_thousand_chinese_characters_expand_by_less_than_1_6() -> None:
    kms = StrictKms()
    sealing = RequestStates(Envelope(make_keys(kms, kms.create_key())), now=Clock())
    empty = len(sealing.seal(HERE, None, asked={}, record={"text": ""}))
    full = len(sealing.seal(HERE, None, asked={}, record={"text": "状" * 1000}))
    assert full / 3000 < 1.6
    assert (full - empty) / 3000 < 1.35


ODD = ["\ud800", "\udfff tail", "\ud83d" + "\ude00", "\U0001f600", "\0\x1f\x7f\u2028", '"\\/', "é", "e\u0301"]


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_every_string_survives_lone_surrogates_too(text: str) -> None:
    here = states()
    bound = bind_request(AUDIENCE, "resources/read", {"uri": f"x:{text}"}, Principal("i", text, "c"))
    opened = here.open(here.seal(bound, None, asked={text: text}, record={text: [text]}), bound)
    assert opened.asked == {text: text}
    assert opened.record == {text: [text]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text() | st.just("state"), JSON, max_size=4))
def test_every_json_record_survives(record: dict[str, Any]) -> None:
    here = states()
    found = here.open(here.seal(HERE, None, asked={}, record=record), HERE).record
    assert found == record
    assert canonical(found) == canonical(record)


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, object(), {1, 2}, b"bytes", 10**5000], ids=lambda bad: type(bad).__name__
)
def test_a_record_that_is_not_json_is_refused_when_it_is_sealed_and_its_content_is_not_shown(bad: object) -> None:
    with pytest.raises(DeveloperError, match="the state is not JSON: keep str, int"):
        states().seal(HERE, None, asked={}, record={"secret": bad})


@pytest.mark.parametrize(("depth", "fits"), [(199, True), (200, False), (900, False), (100_000, False)])
def test_a_record_is_nested_at_most_200_deep_so_that_it_can_be_read_again(depth: int, *, fits: bool) -> None:
    value: object = 1
    for _ in range(depth):
        value = [value]
    here = states()
    if fits:
        assert here.open(here.seal(HERE, None, asked={}, record={"v": value}), HERE).record == {"v": value}
    else:
        with pytest.raises(DeveloperError):
            here.seal(HERE, None, asked={}, record={"v": value})


def test_brackets_in_strings_are_not_depth() -> None:
    here, text = states(), "[{" * 500
    assert here.open(here.seal(HERE, None, asked={}, record={"text": text}), HERE).record == {"text": text}
    assert bind_request(AUDIENCE, "tools/call", {"name": "t", "arguments": {"text": text}}, ALICE)


# The confusion matrix of requests

OTHERS = {
    "audience": HERE._replace(audience="demo/get_weather/prod"),
    "method": HERE._replace(method="prompts/get"),
    "target": bind_request(AUDIENCE, "tools/call", {**CALL, "name": "delete_work_item"}, ALICE),
    "arguments": bind_request(AUDIENCE, "tools/call", {**CALL, "arguments": {"id": 4523}}, ALICE),
}
PEOPLE = {
    "another subject": Principal("https://idp.example", "mallory", "console"),
    "another issuer": Principal("https://idp.evil", "alice", "console"),
    "another client": Principal("https://idp.example", "alice", "other"),
    "the same letters, cut elsewhere": Principal("https://idp.examplea", "lice", "console"),
    "nobody": None,
    "empty": Principal("", "", ""),
}


def test_the_request_that_is_confused_below_is_accepted() -> None:
    here = states(anonymous=True)
    assert here.open(here.seal(HERE, None, asked={}, record={}), HERE)


@pytest.mark.parametrize("reason", OTHERS)
def test_a_state_of_another_request_is_refused_both_ways(reason: str) -> None:
    here, other = states(), OTHERS[reason]
    assert refused(lambda: here.open(here.seal(HERE, None, asked={}, record={}), other)) == reason
    assert refused(lambda: here.open(here.seal(other, None, asked={}, record={}), HERE)) == reason


@pytest.mark.parametrize("who", PEOPLE)
def test_a_state_of_somebody_else_is_refused_both_ways(who: str) -> None:
    here, other = states(anonymous=True), bind_request(AUDIENCE, "tools/call", CALL, PEOPLE[who])
    assert refused(lambda: here.open(here.seal(HERE, None, asked={}, record={}), other)) == "principal"
    assert refused(lambda: here.open(here.seal(other, None, asked={}, record={}), HERE)) == "principal"


def test_without_a_principal_nothing_is_sealed_or_opened_unless_the_deployment_says_that_it_knows_nobody() -> None:
    nobody = bind_request(AUDIENCE, "tools/call", CALL, None)
    open_to_all = states(anonymous=True)
    token = open_to_all.seal(nobody, None, asked={}, record={})
    assert open_to_all.open(token, nobody).round == 1
    for attempt in (
        lambda: states().seal(nobody, None, asked={}, record={}),
        lambda: states().open(token, nobody),
    ):
        with pytest.raises(Misconfigured) as error:
            attempt()
        assert "anonymous=True" in str(error.value.reason)


def test_a_principal_is_known_by_issuer_subject_and_client_and_not_by_name_in_clear() -> None:
    digest = principal_digest(ALICE)
    assert digest == principal_digest(Principal(*ALICE))
    assert digest is not None
    assert len(digest) == 43
    assert "alice" not in digest
    assert principal_digest(None) is None
    assert digest == "KGaz2qQ3aYTYZAUzQ-nQAy9FF_p6sc05yDnh_NhBNS4"


@pytest.mark.parametrize("arguments", [None, {}, "absent"], ids=repr)
def test_no_arguments_null_and_an_empty_object_are_the_same_request(arguments: object) -> None:
    params = {"name": "t"} if arguments == "absent" else {"name": "t", "arguments": arguments}
    assert bind_request(AUDIENCE, "tools/call", params, ALICE) == bind_request(
        AUDIENCE, "tools/call", {"name": "t"}, ALICE
    )


@pytest.mark.parametrize("arguments", [[], "", 0, False, {"a": None}], ids=repr)
def test_other_empty_values_are_not_the_empty_object(arguments: object) -> None:
    params = {"name": "t", "arguments": arguments}
    assert bind_request(AUDIENCE, "tools/call", params, ALICE) != bind_request(
        AUDIENCE, "tools/call", {"name": "t"}, ALICE
    )


def test_meta_and_answers_may_change_between_rounds() -> None:
    params = {**CALL, "_meta": {"progressToken": 7}, "inputResponses": {"a": {}}, "requestState": "x"}
    assert bind_request(AUDIENCE, "tools/call", params, ALICE) == HERE


def test_each_method_is_bound_by_its_own_name_of_the_target() -> None:
    assert bind_request(AUDIENCE, "resources/read", {"uri": "x:1", "name": "no"}, ALICE).target == "x:1"
    assert bind_request(AUDIENCE, "prompts/get", {"uri": "no", "name": "p"}, ALICE).target == "p"
    one = bind_request(AUDIENCE, "resources/read", {"uri": "x:1", "arguments": {"a": 1}}, ALICE)
    assert one == bind_request(AUDIENCE, "resources/read", {"uri": "x:1"}, ALICE)


# Time and rounds


@pytest.mark.parametrize("lifetime", [MINUTES, 3 * DAY])
def test_a_state_ends_with_its_lifetime_to_the_millisecond(lifetime: int) -> None:
    clock = Clock()
    here = states(clock, lifetime_seconds=lifetime)
    token = here.seal(HERE, None, asked={}, record={})
    clock.at = START + lifetime - 0.001
    assert here.open(token, HERE)
    clock.at = START + lifetime
    assert refused(lambda: here.open(token, HERE)) == "expired"


def test_who_may_answer_tomorrow_has_a_day_for_each_of_six_answers() -> None:
    clock = Clock()
    here, previous = states(clock, lifetime_seconds=DAY), None
    for _ in range(6):
        token = here.seal(HERE, previous, asked={}, record={})
        clock.advance(DAY - 1)
        previous = here.open(token, HERE)
    assert previous is not None
    assert previous.round == 6


def test_a_conversation_ends_at_its_deadline_however_often_it_is_renewed() -> None:
    clock = Clock()
    here = states(clock)
    token = here.seal(HERE, None, asked={}, record={})
    for _ in range(7):
        clock.advance(500)
        token = here.seal(HERE, here.open(token, HERE), asked={}, record={})
    last = here.open(token, HERE)
    assert claims_of(token)["exp"] == last.flow_deadline < last.issued + MINUTES * 1000
    clock.at = START + HOUR - 0.001
    assert here.open(token, HERE)
    clock.at = START + HOUR
    assert refused(lambda: here.open(token, HERE)) == "expired"
    with pytest.raises(ToolError, match="used its time"):
        here.seal(HERE, last, asked={}, record={})


def test_a_shorter_lifetime_takes_effect_at_once() -> None:
    here, day = states(), states(lifetime_seconds=DAY)
    token = day.seal(HERE, None, asked={}, record={})
    assert refused(lambda: here.open(token, HERE)) == "lifetime"
    assert refused(lambda: states(lifetime_seconds=DAY - 1).open(token, HERE)) == "lifetime"
    assert day.open(token, HERE)
    short = here.seal(HERE, None, asked={}, record={})
    assert day.open(short, HERE)


def test_a_state_from_the_future_is_refused_beyond_a_minute() -> None:
    clock = Clock()
    here = states(clock)
    token = here.seal(HERE, None, asked={}, record={})
    clock.advance(-60)
    assert here.open(token, HERE)
    clock.advance(-0.001)
    assert refused(lambda: here.open(token, HERE)) == "issued_future"


def test_a_conversation_goes_on_where_each_clock_is_a_minute_behind_the_last() -> None:
    clocks = [Clock(START - 59 * behind) for behind in range(4)]
    fleet, opened = [states(clock) for clock in clocks], None
    for container, next_one in pairwise(fleet):
        opened = next_one.open(container.seal(HERE, opened, asked={}, record={}), HERE)
    assert opened
    assert opened.flow_deadline <= (clocks[-2].at + HOUR) * 1000


def test_a_container_whose_clock_is_behind_mints_nothing_that_the_fleet_refuses() -> None:
    clock, behind = Clock(), Clock(START - 59)
    first, second = states(clock), states(behind)
    opened = second.open(first.seal(HERE, None, asked={}, record={}), HERE)
    assert first.open(second.seal(HERE, opened, asked={}, record={}), HERE).round == 2


def test_a_conversation_leaves_sixteen_states_and_no_more() -> None:
    here, previous = states(), None
    for number in range(1, 17):
        previous = here.open(here.seal(HERE, previous, asked={}, record={}), HERE)
        assert previous.round == number
    with pytest.raises(ToolError, match="used its 16 rounds"):
        here.seal(HERE, previous, asked={}, record={})
    assert refused(lambda: states(max_rounds=15).open(here.seal(HERE, _at(15), asked={}, record={}), HERE)) == "round"


def _at(number: int) -> Claims:
    issued = int(START * 1000)
    return Claims(HERE, issued, issued + 1000, issued + 1000, "f" * 22, number, asked={}, record={})


# Claims that are not claims

BAD_CLAIMS: dict[str, object] = {
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


@pytest.mark.parametrize("name", BAD_CLAIMS)
def test_malformed_claims_are_refused_even_under_a_good_seal(name: str) -> None:
    here = states()
    token = forged(here.seal(HERE, None, asked={}, record={}), **BAD_CLAIMS[name])  # type: ignore[arg-type]
    assert refused(lambda: here.open(token, HERE)) == "claims"


@pytest.mark.parametrize("missing", ["v", "aud", "m", "t", "a", "p", "iat", "exp", "fx", "f", "r", "q", "s"])
def test_every_claim_is_mandatory(missing: str) -> None:
    here = states()
    claims = claims_of(here.seal(HERE, None, asked={}, record={}))
    del claims[missing]
    assert refused(lambda: here.open(json.dumps(claims).encode().hex(), HERE)) == "claims"


@pytest.mark.parametrize(
    "text", [b"", b"null", b"[]", b"1", b"{", b"\xff", b"[" * 100_000, b"1" * 5000, b'{"v":1}', b'"v"'], ids=repr
)
def test_a_payload_that_is_no_document_of_claims_is_refused(text: bytes) -> None:
    assert refused(lambda: states().open(text.hex(), HERE)) == "claims"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exp": int(START * 1000)}, "lifetime"),
        ({"exp": int(START * 1000) - 1}, "lifetime"),
        ({"exp": int(START * 1000) + MINUTES * 1000 + 1}, "lifetime"),
        ({"fx": int(START * 1000) + MINUTES * 1000 - 1}, "lifetime"),
        ({"fx": int(START * 1000) + HOUR * 1000 + 60_001}, "lifetime"),
        ({"iat": int(START * 1000) - 1}, "lifetime"),
        ({"r": 0}, "round"),
        ({"r": -1}, "round"),
        ({"r": 17}, "round"),
    ],
    ids=str,
)
def test_times_and_rounds_that_no_seal_would_write_are_refused(changed: dict[str, object], reason: str) -> None:
    here = states()
    token = forged(here.seal(HERE, None, asked={}, record={}), **changed)
    assert refused(lambda: here.open(token, HERE)) == reason


def test_every_reason_for_the_log_is_in_the_specification() -> None:
    from pathlib import Path  # noqa: PLC0415

    import mcp_functions  # noqa: PLC0415

    room = Path(mcp_functions.__file__).parent / "seal"
    spec = (room / "envelope.md").read_text(encoding="utf-8").split("### 9.5")[1]
    assert {f"`{reason}`" in spec.split("## 10")[0] for reason in ClaimReason} == {True}


# Own codecs


class Faulty(Clear):
    def __init__(self, trouble: object) -> None:
        self.trouble = trouble

    def unseal(self, token: str) -> bytes:
        del token
        if isinstance(self.trouble, Exception):
            raise self.trouble
        return self.trouble  # type: ignore[return-value]


@pytest.mark.parametrize(
    "trouble", [ValueError("secret"), KeyError("k"), RuntimeError(), TypeError(), OSError(), None, "text", 1], ids=repr
)
def test_whatever_an_own_codec_does_wrong_is_a_bad_state(trouble: object) -> None:
    assert refused(lambda: RequestStates(CodecAdapter(Faulty(trouble), LABEL), now=Clock()).open("t", HERE)) == "codec"


@pytest.mark.parametrize("trouble", [TemporarilyUnavailable("own"), Misconfigured("own"), InvalidRequestState("own")])
def test_the_three_errors_of_an_own_codec_pass(trouble: Exception) -> None:
    with pytest.raises(type(trouble)) as error:
        RequestStates(CodecAdapter(Faulty(trouble), LABEL), now=Clock()).open("t", HERE)
    assert error.value is trouble


def test_an_own_codec_is_told_nothing_but_the_token() -> None:
    here = states()
    assert here.open(here.seal(HERE, None, asked={}, record={}), HERE, caller="alice").round == 1


# Over the envelope


def sealed_states(clock: Clock, **turned: Any) -> tuple[RequestStates, StrictKms]:  # noqa: ANN401
    kms = StrictKms()
    envelope = Envelope(make_keys(kms, kms.create_key(), clock=clock), max_age=turned.pop("max_age", MINUTES))
    return RequestStates(envelope, now=clock, **turned), kms


def test_a_caller_pays_for_noise_by_name() -> None:
    here, kms = sealed_states(Clock())
    token = here.seal(HERE, None, asked={}, record={})
    here._seal._keys.reset()  # type: ignore[union-attr]  # noqa: SLF001 - a cold container
    outcomes = []
    for place in range(130, 140):
        noise = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        with pytest.raises((InvalidRequestState, TemporarilyUnavailable)) as error:
            here.open(noise, HERE, caller="mallory")
        outcomes.append(error.value.status)
    assert outcomes == [400] * 3 + [503] * 7
    assert here.open(token, HERE, caller="alice").round == 1
    assert kms.count("Decrypt") == 4


def test_a_state_for_days_opens_on_its_last_day_in_a_container_that_was_never_there_before() -> None:
    clock, kms = Clock(START + 899), StrictKms()
    arn = kms.create_key()

    def container() -> RequestStates:
        return RequestStates(
            Envelope(make_keys(kms, arn, clock=clock), max_age=3 * DAY), now=clock, lifetime_seconds=3 * DAY
        )

    token = container().seal(HERE, None, asked={}, record={"x": 1})
    clock.advance(3 * DAY - 0.001)
    assert container().open(token, HERE).record == {"x": 1}


def test_a_record_too_large_is_refused_by_the_envelope() -> None:
    here, _ = sealed_states(Clock())
    with pytest.raises(StateTooLarge):
        here.seal(HERE, None, asked={}, record={"x": "y" * 30_000})


# The canonical form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0, -0.0),
        (10**20, 1e20),
        (2**53, 2.0**53),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1.0}),
        ([1.0, {"x": [2.0]}], [1, {"x": [2]}]),
        ([1, 2], (1, 2)),
    ],
    ids=repr,
)
def test_spellings_of_the_same_value_are_equal(one: object, other: object) -> None:
    assert canonical(one) == canonical(other)


DIFFERENT: list[object] = [
    0, 1, True, False, None, "", "1", "true", "null", [], {}, [1], [[1]], {"1": 1}, 1.5, "1.5", -1, 2**53,
    2**53 + 1, 2**64, 0.1, 0.1 + 2**-56, 1e-7, 1e300, "é", "e\u0301", "\ud800", "\\ud800", "a.b", "1e+5",
    1e5 + 0.5, [1, 2], [2, 1], [12], {"a": {}}, {"a": []}, {"a": None}, {"": 0}, ["a", "b"], ["a,b"], ['a","b'],
    "[1]", '{"1":1}', [None], [[], []], [[[]]], "\0", "\\u0000", {"a": 1, "b": 2}, {"a": {"b": 2}},
    [{"a": 1}, {"b": 2}],
]  # fmt: skip


def test_different_values_are_different() -> None:
    forms = [canonical(value) for value in DIFFERENT]
    assert len(set(forms)) == len(forms)


def same(one: object, other: object) -> bool:
    """Say whether two JSON values are equal as JSON: a bool is no number, numbers are equal by value."""
    match one, other:
        case (bool(), _) | (_, bool()):
            return one is other
        case (int() | float(), int() | float()):
            return one == other
        case (dict(), dict()):
            return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
        case (list(), list()):
            return len(one) == len(other) and all(map(same, one, other))
        case _:
            return type(one) is type(other) and one == other


SMALL = st.recursive(
    st.sampled_from(
        [None, True, False, 0, 1, 1.0, 0.5, -0.0, 2**53, 2**53 + 1, 9007199254740992.0, "", "1", "a.b", "é"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab1"), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=600)
@given(SMALL, SMALL)
@example({"a": 1}, {"a": True})
@example([1.0], [1])
def test_two_values_have_one_form_exactly_if_they_are_equal(one: object, other: object) -> None:
    assert (canonical(one) == canonical(other)) == same(one, other)


@given(JSON)
def test_the_form_survives_being_written_and_read_again(value: object) -> None:
    again = json.loads(json.dumps(value))
    assert canonical(again) == canonical(value)
    assert canonical(json.loads(canonical(value))) == canonical(value)


@given(st.dictionaries(st.text(), JSON, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_count(value: dict[str, Any], chance: Any) -> None:  # noqa: ANN401
    keys = list(value)
    chance.shuffle(keys)
    assert canonical({key: value[key] for key in keys}) == canonical(value)


@pytest.mark.parametrize(("depth", "fits"), [(64, True), (65, False), (5000, False), (100_000, False)])
def test_arguments_are_nested_at_most_64_deep(depth: int, *, fits: bool) -> None:
    for wrap, leaf in product((lambda v: [v], lambda v: {"a": v}), (1, 1.5)):  # type: ignore[no-any-return,unused-ignore]
        value: Any = leaf
        for _ in range(depth):
            value = wrap(value)
        if fits:
            assert canonical(value)
        else:
            with pytest.raises(ValueError, match="nested"):
                canonical(value)
            with pytest.raises(InvalidParams):
                bind_request(AUDIENCE, "tools/call", {"name": "t", "arguments": value}, ALICE)


@pytest.mark.parametrize(
    "bad",
    [math.nan, math.inf, -math.inf, {"a": [math.nan]}, object(), {1: 2, "1": 3}],
    ids=lambda bad: type(bad).__name__,
)
def test_what_has_no_canonical_form_is_refused(bad: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        canonical(bad)


def test_the_digest_is_all_of_sha_256_under_its_own_label() -> None:
    assert Binding(AUDIENCE, "tools/call", "t", "C9WWNEfSAPnhs5q-tHHY-oAA-VGdD6JVig3kWwyMsVE", None) == bind_request(
        AUDIENCE, "tools/call", {"name": "t", "arguments": {"id": 1}}, None
    )
