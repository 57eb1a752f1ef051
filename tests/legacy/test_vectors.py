"""What clients of 2025 carry, as envelope.md §14 writes it: files for whoever reads them in another language."""

from __future__ import annotations

from mcp_functions.legacy import sealing, sessions, tickets
from mcp_functions.legacy.running import Call
from mcp_functions.legacy.sealing import Sealer
from mcp_functions.legacy.sessions import Session
from mcp_functions.legacy.tickets import Place, Question, Stream
from tests.seal.test_envelope import VECTORS, read_vector, reader_of

BORN = 1767225605
PRINCIPAL = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA"
CLIENT = ("a client", "1.30")
SESSION = Session("AAECAwQFBgcICQoLDA0ODw", "2025-11-25", "fusr", CLIENT, "info", PRINCIPAL, BORN + 86400)
STREAM = Stream(SESSION.id, 7, "AAECAwQFBgcICQoL", PRINCIPAL, BORN + 900)
PLACE = Place(STREAM, 1, polls=2)
FIELDS = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
PARAMS = {"name": "update_work_item", "arguments": FIELDS, "_meta": {}}
CALL = Call(7, "tools/call", PARAMS, "ks1.the-state-that-the-next-round-must-bring")
ANSWERS, REST = {"why": {"action": "decline"}}, {"more": {"method": "roots/list"}}
QUESTION = Question(STREAM, 1, "resolution", "elicitation/create", CALL, ANSWERS, REST)

FILES = {path.stem: read_vector(path) for path in VECTORS}


def sealer(kind: str, label: bytes, at: str) -> tuple[Sealer, str]:
    """Make the seal of a vector; return it with the vector's token."""
    vector = FILES[f"accept-{kind}"]
    assert vector["label"] == label.decode()
    return Sealer(reader_of(vector, at), label), vector["token"]


def test_the_vector_of_a_session_is_the_session_that_this_writes_and_reads() -> None:
    seal, token = sealer("session", sealing.SESSION, "now")
    assert sessions.opened(token, seal, PRINCIPAL, caller="c", now=BORN + 3600) == SESSION
    seal, token = sealer("session", sealing.SESSION, "born")
    assert sessions.sealed(SESSION, seal) == token


def test_the_vector_of_an_event_is_the_id_that_this_writes_and_reads() -> None:
    seal, token = sealer("event", sealing.EVENT, "now")
    assert tickets.place_of(token, seal, "c") == PLACE
    seal, token = sealer("event", sealing.EVENT, "born")
    assert tickets.place_id(PLACE, seal) == token


def test_the_vector_of_a_question_is_the_id_that_this_writes_and_reads() -> None:
    seal, token = sealer("question", sealing.QUESTION, "now")
    assert tickets.question_of(token, seal, "c") == QUESTION
    seal, token = sealer("question", sealing.QUESTION, "born")
    assert tickets.question_id(QUESTION, seal) == token


def test_their_limits_are_those_of_the_specification() -> None:
    limits = {kind: int(FILES[f"accept-{kind}"]["max-chars"]) for kind in ("session", "event", "question")}
    assert limits == {
        "session": sealing.MAX_SESSION, "event": sealing.MAX_EVENT, "question": sealing.MAX_QUESTION,
    }  # fmt: skip
