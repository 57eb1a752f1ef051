"""Attacks over HTTP with two callers and several tools, as a client without access to the server can try them.

Every invalid state gets the same bytes as a response, runs no function, and costs at most the KMS calls listed here.
The last section shows attacks that no seal prevents; docs/security.md documents them.
"""

from __future__ import annotations

import base64
import json
import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from functions.get_weather.app import handler as get_weather
from mcp_functions.protocol.messages import Principal
from mcp_functions.seal.binding import bind_request
from mcp_functions.seal.envelope import Envelope
from mcp_functions.seal.keyring import Keyring
from mcp_functions.seal.keys import Scope
from mcp_functions.seal.kms import KmsKey
from mcp_functions.seal.request_state import RequestStates
from mcp_functions_harness.testing import Conversation
from tests.support.attacker import CLIENT, Site, site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SEAT = {"seat": {"action": "accept", "content": {"text": "window"}}}
MEAL = {"meal": {"action": "accept", "content": {"text": "fish"}}}
INVALID_STATE_ERROR = {
    "code": -32602,
    "message": "Invalid or expired requestState",
    "data": {"reason": "invalid_request_state"},
}
MARKER = "planted-marker-7731"
OFFSETS = {"suite": 0, "kd": 1, "born": 5, "kek": 7, "wlen": 11, "wrapped": 60}  # offsets in the body of a token


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("site")) as started:
        yield started


@pytest.fixture
def target(running: Site) -> Site:
    """Wait until every budget is full again, and forget what was."""
    running.later(200)
    running.acts.unlink(missing_ok=True)
    running.answers.clear()
    running.kms.bodies.clear()
    return running


def body_of(token: str) -> bytes:
    return base64.urlsafe_b64decode(token[4:] + "=" * (-len(token[4:]) % 4))


def token_of(body: bytes) -> str:
    return "ks1." + base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def flip_states(token: str, at: int) -> str:
    body = bytearray(body_of(token))
    body[at] ^= 1
    return token_of(bytes(body))


# ---- Every way to be wrong, one at a time


@dataclass(frozen=True)
class Attack:
    """A request with an invalid state: its parameters, its caller, and the KMS calls that it may cost."""

    name: str
    state: Callable[[Site, str], Any]
    kms: int = 0
    tool: str = "book"
    arguments: dict[str, Any] = field(default_factory=lambda: {"city": "Lisbon"})
    who: str = "alice"


def text(write: str) -> Callable[[Site, str], str]:
    return lambda _site, good: write.format(good=good, rest=good[4:], start=good[:-1], part=good[:100])


def flip(what: str) -> Callable[[Site, str], str]:
    return lambda _site, good: flip_states(good, OFFSETS[what])


def flip_after(bytes_: int) -> Callable[[Site, str], str]:
    """Flip a bit so far behind the wrapped key: of the salt (0), the commitment (24), the sealed part (56)."""
    return lambda _site, good: flip_states(good, 12 + int.from_bytes(body_of(good)[10:12], "big") + bytes_)


def of(tool: str, **options: Any) -> Callable[[Site, str], str]:  # noqa: ANN401
    return lambda site, _good: site.send(tool, **options).state


def age_state(seconds: float) -> Callable[[Site, str], str]:
    def age(site: Site, good: str) -> str:
        site.later(seconds)
        return good

    return age


def sealed_elsewhere(scope: Scope, *, foreign: bool = False) -> Callable[[Site, str], str]:
    """Seal the right claims in some scope: under our KMS key, or under one that the attacker brings."""

    def seal(site: Site, _good: str) -> str:
        before = len(site.kms.asked)
        wrapping = ForeignKey() if foreign else KmsKey(os.environ["MCP_KMS_KEYS"])
        states = RequestStates(Envelope(Keyring([wrapping], scope, now=site.now)), now=site.now)
        assert site.issuer
        alice = Principal(site.issuer.url, "alice", CLIENT)
        bound = bind_request(
            "local/travel/local", "tools/call", {"name": "book", "arguments": {"city": "Lisbon"}}, alice
        )
        sealed = states.seal(bound, None, asked={}, record={})
        del site.kms.asked[before:]  # do not count the attacker's own calls
        return sealed

    return seal


class ForeignKey:
    """A KMS key of the attacker's own, whose policy lets everybody use it; its tokens name our key."""

    def __init__(self) -> None:
        self._client = boto3.client("kms")
        self._arn = self._client.create_key()["KeyMetadata"]["Arn"]
        self.id = os.environ["MCP_KMS_KEYS"].rpartition("/")[2]

    def generate(self, context: dict[str, str]) -> tuple[bytes, bytes]:
        data_key = self._client.generate_data_key(KeyId=self._arn, KeySpec="AES_256", EncryptionContext=context)
        return data_key["Plaintext"], data_key["CiphertextBlob"]

    def unwrap(self, wrapped: bytes, context: dict[str, str]) -> bytes:
        opened = self._client.decrypt(CiphertextBlob=wrapped, EncryptionContext=context)
        return bytes(opened["Plaintext"])


HOME = Scope("local/travel", "local", "1")
ATTACKS = [
    # no tokens at all
    Attack("an empty text", text("")),
    Attack("a word", text("null")),
    Attack("nothing", lambda _site, _good: None),
    Attack("a number", lambda _site, _good: 7),
    Attack("a list", lambda _site, good: [good]),
    Attack("an object", lambda _site, good: {"requestState": good}),
    Attack("noise", lambda _site, _good: token_of(os.urandom(400))),
    Attack("a prefix alone", text("ks1.")),
    # damaged
    Attack("another prefix", text("ks2.{rest}")),
    Attack("a prefix in capitals", text("KS1.{rest}")),
    Attack("a character less", text("{start}")),
    Attack("a character more", text("{good}A")),
    Attack("padding", text("{good}=")),
    Attack("a line's end", text("{good}\n")),
    Attack("a part", text("{part}")),
    Attack("twice", text("{good}{good}")),
    Attack("its suite flipped", flip("suite")),
    Attack("its kind flipped", flip("kd")),
    Attack("its birth flipped", flip("born"), kms=1),
    Attack("its key's name flipped", flip("kek")),
    Attack("its length flipped", flip("wlen"), kms=1),
    Attack("its wrapped key flipped", flip("wrapped"), kms=1),
    Attack("its salt flipped", flip_after(0)),
    Attack("its commitment flipped", flip_after(24)),
    Attack("its sealed part flipped", flip_after(56)),
    Attack("its tag flipped", lambda _site, good: flip_states(good, -1)),
    # forged
    Attack("sealed for another function", sealed_elsewhere(HOME._replace(service="local/bank")), kms=1),
    Attack("sealed for another stack", sealed_elsewhere(HOME._replace(service="other/travel")), kms=1),
    Attack("sealed for another stage", sealed_elsewhere(HOME._replace(stage="prod")), kms=1),
    Attack("sealed for another generation", sealed_elsewhere(HOME._replace(generation="2")), kms=1),
    Attack("sealed under a key of the attacker's", sealed_elsewhere(HOME, foreign=True), kms=1),
    # crossed: good states, in the wrong place
    Attack("another person's", of("book", who="mallory")),
    Attack("stolen", text("{good}"), who="mallory"),
    Attack("another tool's of the same function", of("cancel")),
    Attack("a prompt's of the same function", of("postcard")),
    Attack("another function's", of("pay"), kms=1),
    Attack("a resource's", of("tickets://7"), kms=1),
    Attack("for other arguments", text("{good}"), arguments={"city": "Porto"}),
    Attack("for more arguments", text("{good}"), arguments={"city": "Lisbon", "class": "first"}),
    Attack("for a function that never asks", text("{good}"), tool="add", arguments={"a": 1, "b": 2}),
    # late
    Attack("ten minutes late", age_state(601)),
    Attack("an hour late", age_state(3600)),
    Attack("a month late", age_state(30 * 86_400)),
    # oversized
    Attack("over the cap", lambda _site, good: good + "A" * 25_000),
    Attack("a megabyte", lambda _site, _good: "ks1." + "A" * 1_000_000),
]


@pytest.fixture(scope="module")
def reference(running: Site) -> tuple[object, ...]:
    """Return the one refusal that all others must be, byte for byte."""
    refused = running.send("book", requestState="ks1.", inputResponses=SEAT)
    assert (refused.status, refused.error) == (400, INVALID_STATE_ERROR)
    return refused.comparable


PLACES = [
    *(pytest.param(attack, "/{folder}", id=attack.name) for attack in ATTACKS),
    *(pytest.param(attack, "", id=f"front door: {attack.name}") for attack in ATTACKS[::4]),
]


@pytest.mark.parametrize(("attack", "route"), PLACES)
def test_every_invalid_state_gets_the_same_bytes_and_runs_nothing(
    target: Site, reference: tuple[object, ...], attack: Attack, route: str
) -> None:
    folder = route.format(folder="add" if attack.tool == "add" else "travel")
    bad = attack.state(target, target.send("book", route=route and "/travel").state)
    before = len(target.kms.asked)
    refused = target.send(
        attack.tool, attack.arguments, who=attack.who, route=folder, requestState=bad, inputResponses=SEAT
    )
    assert refused.comparable == reference
    assert target.kms.asked[before:] == ["Decrypt"] * attack.kms
    assert target.acted() == []


def test_the_valid_state_of_the_attacks_is_accepted(target: Site) -> None:
    second = target.send("book", requestState=target.send("book").state, inputResponses=SEAT)
    assert second.asked == ["meal"]
    last = target.send("book", requestState=second.state, inputResponses=MEAL)
    assert last.result["content"][0]["text"] == "Booked."
    assert target.acted() == ["booked Lisbon"]


def test_a_change_of_any_character_of_a_state_is_refused(target: Site) -> None:
    good = target.send("book").state
    answers = {
        target.send("book", requestState=good[:at] + "." + good[at + 1 :]).comparable for at in range(0, len(good), 9)
    }
    assert len(answers) == 1
    assert answers.pop()[0] == 400


# ---- Noise that would make KMS dear


def test_random_states_cause_three_kms_calls_and_are_then_refused_without_kms(target: Site) -> None:
    good = target.send("book", who="mallory").state
    before = len(target.kms.asked)
    bits = range(OFFSETS["wrapped"], OFFSETS["wrapped"] + 20)
    answers = [target.send("book", who="mallory", requestState=flip_states(good, at)) for at in bits]
    assert [answer.status for answer in answers] == [400] * 3 + [503] * 17
    assert target.kms.asked[before:] == ["Decrypt"] * 3
    for over in answers[3:]:
        assert over.error == {"code": -32603, "message": "Temporarily unavailable", "data": {"retryable": True}}
        assert int(over.headers["retry-after"]) > 0
    # other callers keep their budget; a caller without one still opens tokens whose key is in memory
    assert target.send("book", who="mallory", requestState=good, inputResponses=SEAT).asked == ["meal"]
    alices = target.send("book", who="alice").state
    assert target.send("book", who="alice", requestState=flip_states(alices, OFFSETS["wrapped"])).status == 400
    assert target.send("book", who="alice", requestState=alices, inputResponses=SEAT).asked == ["meal"]


def test_thirty_oauth_clients_of_one_user_share_a_budget_of_kms_calls(target: Site) -> None:
    good = target.send("book", who="mallory").state
    before = len(target.kms.asked)
    for number in range(30):
        noise = flip_states(good, OFFSETS["wrapped"] + number)
        target.send("book", who="mallory", client=f"client-{number}", requestState=noise)
    assert target.kms.asked[before:] == ["Decrypt"] * 3
    assert (
        target.send("book", who="alice", client="client-1", requestState=flip_states(good, OFFSETS["wrapped"])).status
        == 400
    )


def test_the_budget_of_kms_calls_is_refilled_over_time(target: Site) -> None:
    good = target.send("book", who="mallory").state
    for at in range(OFFSETS["wrapped"], OFFSETS["wrapped"] + 4):
        last = target.send("book", who="mallory", requestState=flip_states(good, at))
    assert last.status == 503
    target.later(31)
    assert target.send("book", who="mallory", requestState=flip_states(good, OFFSETS["wrapped"])).status == 400


# ---- Answers without a question


def test_answers_without_a_state_are_ignored(target: Site) -> None:
    cold = target.send("book", inputResponses=SEAT | MEAL)
    assert cold.asked == ["seat"]
    assert target.acted() == []


def test_an_answer_to_a_later_question_is_ignored(target: Site) -> None:
    early = target.send("book", requestState=target.send("book").state, inputResponses=SEAT | MEAL)
    assert early.asked == ["meal"]
    assert target.acted() == []


def test_a_later_round_cannot_change_an_earlier_answer(target: Site) -> None:
    second = target.send("book", requestState=target.send("book").state, inputResponses=SEAT)
    other = {"seat": {"action": "decline"}}
    last = target.send("book", requestState=second.state, inputResponses=other | MEAL)
    assert last.result["content"][0]["text"] == "Booked."


def test_answers_of_another_conversation_are_ignored_without_its_state(target: Site) -> None:
    done = target.send("book", requestState=target.send("book").state, inputResponses=SEAT)
    assert done.asked == ["meal"]
    assert target.send("book", inputResponses=MEAL).asked == ["seat"]


# ---- Secrecy


def test_a_state_does_not_show_a_marker_in_the_answers(
    target: Site, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, "mcp_functions")
    told = {"seat": {"action": "accept", "content": {"text": MARKER}}}
    state = target.send("book", requestState=target.send("book").state, inputResponses=told).state
    bad = [flip_states(state, -1), flip_states(state, OFFSETS["wrapped"])]
    for token in bad:
        target.send("book", requestState=token, inputResponses=told)
    target.send("book", {"city": f"Porto, {MARKER}"}, requestState=state, inputResponses=told)
    target.send("book", who=MARKER, requestState=state, inputResponses=told)
    target.send("book", requestState=state, inputResponses=MEAL)
    assert [answer.status for answer in target.answers] == [200, 200, 400, 400, 400, 400, 200]
    assert "refused: -32602 arguments" in caplog.messages
    seen = [
        *(answer.body for answer in target.answers),
        *(json.dumps(answer.headers).encode() for answer in target.answers),
        *(body_of(token) for token in (state, *bad)),
        *target.kms.bodies,
        caplog.text.encode(),
        "".join(capfd.readouterr()).encode(),
    ]
    in_base64 = base64.b64encode(MARKER.encode())[:-4]
    for written in seen:
        assert not any(form in written for form in (MARKER.encode(), in_base64, MARKER.encode().hex().encode()))


def test_the_header_of_a_token_does_not_depend_on_its_principal(target: Site) -> None:
    tokens = [target.send("book", who=who).state for who in ("alice", "mallory")]
    tokens.append(target.send("cancel").state)
    heads = {body_of(token)[: 12 + int.from_bytes(body_of(token)[10:12], "big")] for token in tokens}
    assert len(heads) == 1  # one data key; the header holds no user, tool or time


# ---- What no seal prevents (docs/security.md)


def test_a_seal_does_not_prevent_that_a_state_is_sent_twice_before_it_expires(target: Site) -> None:
    first = target.send("book").state
    second = target.send("book", requestState=first, inputResponses=SEAT).state
    for _ in range(2):
        assert target.send("book", requestState=second, inputResponses=MEAL).status == 200
    assert target.acted() == ["booked Lisbon"] * 2
    rewound = target.send("book", requestState=first, inputResponses={"seat": {"action": "decline"}})
    assert rewound.status == 200


def test_a_program_without_a_user_can_answer_a_question(target: Site) -> None:
    state = target.send("cancel").state
    assert target.send("cancel", requestState=state, inputResponses=SEAT).result["content"][0]["text"] == "Cancelled."


def test_a_direct_invocation_of_the_lambda_can_claim_any_principal() -> None:
    alices = Conversation(get_weather, principal="alice").call(location="Lisbon")
    answers = {"github_login": {"name": "mallory"}}
    assert alices.as_("mallory").accept(**answers).status == 400
    # an event is all that a Lambda knows: who may write one, may write alice's name into it
    assert alices.as_("alice").accept(**answers).status == 200
