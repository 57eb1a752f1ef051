"""The sealed values that clients of 2025 carry (envelope.md §14) are those of the published test vectors.

A vector is a file with a value, a key and the token that they make, for implementations in other languages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.dispatch.seal_factory import SealFactory
from mcp_functions.legacy.call_ids import Call, CallIds, CallStream, Owner, PendingQuestion, StreamPosition
from mcp_functions.legacy.sessions import Session, SessionTokens
from tests.support.envelope_vectors import VECTORS
from tests.support.settings import make_settings

if TYPE_CHECKING:
    from mcp_functions.protocol.wire_types import Params
    from mcp_functions.seal.envelope import Seal


SETTINGS = make_settings()
SEALED_AT = 1767225605
PRINCIPAL = "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA"
CLIENT_INFO = ("a client", "1.30")
SESSION = Session("AAECAwQFBgcICQoLDA0ODw", "2025-11-25", "fusr", CLIENT_INFO, "info", PRINCIPAL, SEALED_AT + 86400)
OWNER = Owner(SESSION.id, PRINCIPAL, caller_id="c")
STREAM = CallStream(SESSION.id, 7, "AAECAwQFBgcICQoL", PRINCIPAL, SEALED_AT + 900)
POSITION = StreamPosition(STREAM, 1, polls=2)
FIELDS = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
PARAMS: Params = {"name": "update_work_item", "arguments": FIELDS, "_meta": {}}
CALL = Call(7, "tools/call", PARAMS, "ks1.the-state-that-the-next-round-must-bring")
ANSWERS = {"why": {"action": "decline"}}
REMAINING_QUESTIONS = {"more": {"method": "roots/list"}}
QUESTION = PendingQuestion(STREAM, 1, "resolution", "elicitation/create", CALL, ANSWERS, REMAINING_QUESTIONS)


class VectorSeals(SealFactory):
    """Makes the seals of the vectors, at the vectors' time `at`."""

    def __init__(self, at: str) -> None:
        super().__init__(SETTINGS, "vectors", now=lambda: SEALED_AT)
        self.at = at

    def seal(self, label: bytes, *, max_age: int, max_chars: int | None = None) -> Seal:
        vector = VECTORS[f"accept-{label.decode().removeprefix('ks1/')}"]
        assert vector["label"] == label.decode()
        assert vector["max-chars"] == str(max_chars)
        assert vector["max-age"] == str(max_age)
        return vector.envelope(self.at)


def token_of(kind: str) -> str:
    return VECTORS[f"accept-{kind}"]["token"]


def test_a_session_is_read_and_written_as_in_its_vector() -> None:
    tokens = SessionTokens(VectorSeals("now"), SETTINGS)
    assert tokens.read(token_of("session"), PRINCIPAL, caller_id="c", now=SEALED_AT + 3600) == SESSION
    assert SessionTokens(VectorSeals("born"), SETTINGS).write(SESSION) == token_of("session")


def test_an_event_id_is_read_and_written_as_in_its_vector() -> None:
    assert CallIds(VectorSeals("now"), SETTINGS).read_event(token_of("event"), OWNER) == POSITION
    assert CallIds(VectorSeals("born"), SETTINGS).write_event(POSITION) == token_of("event")


def test_a_question_id_is_read_and_written_as_in_its_vector() -> None:
    assert CallIds(VectorSeals("now"), SETTINGS).read_question(token_of("question"), OWNER) == QUESTION
    assert CallIds(VectorSeals("born"), SETTINGS).write_question(QUESTION) == token_of("question")
