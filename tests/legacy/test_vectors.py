"""The values that clients of 2025 carry, as envelope.md §14 defines them, in files for readers in other languages."""

from __future__ import annotations

from mcp_functions.http.events import HttpRequest
from mcp_functions.legacy import sessions, stream_ids, token_seals
from mcp_functions.legacy.exchange import Exchange
from mcp_functions.legacy.runner import Call
from mcp_functions.legacy.sessions import Session
from mcp_functions.legacy.stream_ids import CallStream, PendingQuestion, StreamPosition
from mcp_functions.legacy.token_seals import TokenSeal
from mcp_functions.protocol.messages import Identity
from tests.seal.test_envelope import VECTORS, read_vector, reader_of

BORN = 1767225605
PRINCIPAL = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA"
CLIENT = ("a client", "1.30")
SESSION = Session("AAECAwQFBgcICQoLDA0ODw", "2025-11-25", "fusr", CLIENT, "info", PRINCIPAL, BORN + 86400)
HTTP = HttpRequest("POST", "/mcp", {}, "", is_base64=False, address="203.0.113.9", began=0, context={})
EXCHANGE = Exchange(HTTP, {}, Identity(), PRINCIPAL, SESSION.revision, SESSION, deadline=BORN + 30, ends=BORN + 30)
STREAM = CallStream(SESSION.id, 7, "AAECAwQFBgcICQoL", PRINCIPAL, BORN + 900)
PLACE = StreamPosition(STREAM, 1, polls=2)
FIELDS = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
PARAMS = {"name": "update_work_item", "arguments": FIELDS, "_meta": {}}
CALL = Call(7, "tools/call", PARAMS, "ks1.the-state-that-the-next-round-must-bring")
ANSWERS, REST = {"why": {"action": "decline"}}, {"more": {"method": "roots/list"}}
QUESTION = PendingQuestion(STREAM, 1, "resolution", "elicitation/create", CALL, ANSWERS, REST)

FILES = {path.stem: read_vector(path) for path in VECTORS}


def sealer(kind: str, label: bytes, at: str) -> tuple[TokenSeal, str]:
    """Make the seal of a vector; return it with the vector's token."""
    vector = FILES[f"accept-{kind}"]
    assert vector["label"] == label.decode()
    return TokenSeal(reader_of(vector, at), label), vector["token"]


def test_the_vector_of_a_session_is_the_session_that_this_writes_and_reads() -> None:
    seal, token = sealer("session", token_seals.SESSION, "now")
    assert sessions.open_session(token, seal, PRINCIPAL, caller_id="c", now=BORN + 3600) == SESSION
    seal, token = sealer("session", token_seals.SESSION, "born")
    assert sessions.seal_session(SESSION, seal) == token


def test_the_vector_of_an_event_is_the_id_that_this_writes_and_reads() -> None:
    seal, token = sealer("event", token_seals.EVENT, "now")
    assert stream_ids.open_event_id(token, seal, EXCHANGE) == PLACE
    seal, token = sealer("event", token_seals.EVENT, "born")
    assert stream_ids.seal_event_id(PLACE, seal) == token


def test_the_vector_of_a_question_is_the_id_that_this_writes_and_reads() -> None:
    seal, token = sealer("question", token_seals.QUESTION, "now")
    assert stream_ids.open_question_id(token, seal, EXCHANGE) == QUESTION
    seal, token = sealer("question", token_seals.QUESTION, "born")
    assert stream_ids.seal_question_id(QUESTION, seal) == token


def test_their_limits_are_those_of_the_specification() -> None:
    limits = {kind: int(FILES[f"accept-{kind}"]["max-chars"]) for kind in ("session", "event", "question")}
    assert limits == {
        "session": token_seals.MAX_SESSION, "event": token_seals.MAX_EVENT, "question": token_seals.MAX_QUESTION,
    }  # fmt: skip
