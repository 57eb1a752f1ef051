"""The sealed values that clients of 2025 carry (envelope.md §14) are those of the published test vectors.

A vector is a file with a value, a key and the token that they make, for implementations in other languages.
"""

from __future__ import annotations

from mcp_functions.http.events import HttpRequest
from mcp_functions.legacy import sealed_ids
from mcp_functions.legacy.exchange import Deployment, Exchange
from mcp_functions.legacy.runner import Call, ModernServer
from mcp_functions.legacy.sealed_ids import CallStream, IdSeal, PendingQuestion, StreamPosition
from mcp_functions.legacy.sessions import Session, open_session
from mcp_functions.protocol.messages import Identity, Request, Result
from tests.support.envelope_vectors import VECTORS
from tests.support.settings import make_settings


def answer_nothing(request: Request) -> Result:
    raise AssertionError(request)  # these tests only open ids


SEALED_AT = 1767225605
PRINCIPAL = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA"
CLIENT = ("a client", "1.30")
SESSION = Session("AAECAwQFBgcICQoLDA0ODw", "2025-11-25", "fusr", CLIENT, "info", PRINCIPAL, SEALED_AT + 86400)
HTTP = HttpRequest("POST", "/mcp", {}, "", is_base64=False, address="203.0.113.9", received_ms=0, context={})
EXCHANGE = Exchange(
    Deployment(make_settings(), ModernServer(answer_nothing, {}), lambda: SEALED_AT, session_seal=None, mailbox=None),
    HTTP,
    {},
    Identity(),
    PRINCIPAL,
    "c",
    SESSION.revision,
    SESSION,
    gateway_deadline=SEALED_AT + 30,
    lambda_deadline=SEALED_AT + 30,
)
STREAM = CallStream(SESSION.id, 7, "AAECAwQFBgcICQoL", PRINCIPAL, SEALED_AT + 900)
POSITION = StreamPosition(STREAM, 1, polls=2)
FIELDS = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
PARAMS = {"name": "update_work_item", "arguments": FIELDS, "_meta": {}}
CALL = Call(7, "tools/call", PARAMS, "ks1.the-state-that-the-next-round-must-bring")
ANSWERS = {"why": {"action": "decline"}}
REMAINING_QUESTIONS = {"more": {"method": "roots/list"}}
QUESTION = PendingQuestion(STREAM, 1, "resolution", "elicitation/create", CALL, ANSWERS, REMAINING_QUESTIONS)


def read_vector(kind: str, label: bytes, at: str) -> tuple[IdSeal, str]:
    """Return the seal of a vector at its time `at`, and its token."""
    vector = VECTORS[f"accept-{kind}"]
    assert vector["label"] == label.decode()
    return IdSeal(vector.envelope(at), label), vector["token"]


def test_a_session_is_read_and_written_as_in_its_vector() -> None:
    seal, token = read_vector("session", sealed_ids.SESSION, "now")
    assert open_session(token, seal, PRINCIPAL, caller_id="c", now=SEALED_AT + 3600) == SESSION
    seal, token = read_vector("session", sealed_ids.SESSION, "born")
    assert seal.seal({"v": 1, **SESSION._asdict()}) == token


def test_an_event_id_is_read_and_written_as_in_its_vector() -> None:
    seal, token = read_vector("event", sealed_ids.EVENT, "now")
    assert sealed_ids.open_event_id(token, seal, EXCHANGE) == POSITION
    seal, token = read_vector("event", sealed_ids.EVENT, "born")
    assert seal.seal(POSITION._asdict()) == token


def test_a_question_id_is_read_and_written_as_in_its_vector() -> None:
    seal, token = read_vector("question", sealed_ids.QUESTION, "now")
    assert sealed_ids.open_question_id(token, seal, EXCHANGE) == QUESTION
    seal, token = read_vector("question", sealed_ids.QUESTION, "born")
    assert seal.seal(QUESTION._asdict()) == token


def test_the_limits_of_the_lengths_are_those_of_the_vectors() -> None:
    limits = {kind: int(VECTORS[f"accept-{kind}"]["max-chars"]) for kind in ("session", "event", "question")}
    assert limits == {
        "session": sealed_ids.MAX_SESSION, "event": sealed_ids.MAX_EVENT, "question": sealed_ids.MAX_QUESTION,
    }  # fmt: skip
