"""The record that `serve(audit=…)` passes to the author: the questions of a round, and the answers to the last ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.rounds.input_requests import message_of
from mcp_functions.seal.binding import principal_digest
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.rounds.round import Round


class AuditRecord(NamedTuple):
    """The questions that one round asked, and how the questions of the round before were answered.

    If a client repeats a round, its record comes again with the same `flow` and `round`: use them as the key.

    Attributes:
        flow: the id of the conversation.
        round: the number of the round, from 1.
        handler: the name of the tool, prompt or resource.
        principal: a digest of the caller, as in the state's claims; None without authentication.
        asked: the open questions by key, each as the message that the user sees (or the request's method).
        answered: the actions of this request's answers by key: "accept", "decline" or "cancel"; "answer" if the
            client's model or the client itself answered; "invalid" if the answer did not fit and the question is asked
            again. It never holds the content of an answer.
        answered_by: "client" where an elicitation of the client was answered; "app" for a form that the host showed,
            which proves possession of the state and not a person; "model" for answers that the model relayed.
    """

    flow: str
    round: int
    handler: str
    principal: str | None
    asked: Mapping[str, str]
    answered: Mapping[str, str]
    answered_by: str = "client"


def audit_record(round_: Round, handler: str, *, sent: bool, answered_by: str = "client") -> AuditRecord:
    """Return the audit record of a round; `sent` is False if an error takes the place of its questions."""
    requests = round_.requests if sent else {}
    return AuditRecord(
        flow=round_.history.flow,
        round=round_.history.number,
        handler=handler,
        principal=principal_digest(round_.request.principal),
        asked={key: message_of(request) for key, request in requests.items()},
        answered=dict(round_.questions.actions),
        answered_by=answered_by,
    )
