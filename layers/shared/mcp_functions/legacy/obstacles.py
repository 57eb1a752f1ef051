"""Why this server cannot ask a client, or cannot finish a call for it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from mcp_functions.http import events
from mcp_functions.legacy import revisions
from mcp_functions.protocol.messages import value_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_functions.legacy.exchange import Exchange


class Obstacle(StrEnum):
    """Why a call was not finished, in the words of the explanation to the client."""

    NOT_DECLARED = "this client did not declare support for it"
    NEVER_RESUMES = "this client does not resume a stream after the user's answer"
    NO_EVENT_STREAM = "it needs an event stream, which the response to this request cannot be"
    REVISION_TOO_EARLY = "this server does not ask clients of this revision, because they do not resume streams"
    NO_TABLE = "this server has no table for questions to clients of this revision (its operator can add one)"
    TABLE_UNAVAILABLE = "the server's table for questions is temporarily unavailable"
    NOT_IN_REVISION = "this client's revision has no request for it"
    TOO_MANY_QUESTIONS = "it asks more questions at once than this server can keep for this client"
    NO_KEY = "the server's key for questions is not available"
    TOO_LARGE = "the call is too large to be kept while the user answers"
    TAKES_TOO_LONG = "the work takes longer than one request, and this server cannot continue it for this client"
    CLIENT_REFUSED = "the client refused"
    CLIENT_FAILED = "the client could not ask its user"
    RUNS_AS_TASK = "it runs as a task, which clients of this revision do not support"


# These clients speak 2025-11-25 and never resume a stream that ended, so a call that asks would hang. We tried Vercel's
# AI SDK (1.0). According to its source, Visual Studio Code resumes no stream of a POST.
NON_RESUMING_CLIENTS = ("ai-sdk-mcp-client", "Visual Studio Code", "Code - OSS")


def obstacle_to_asking(exchange: Exchange) -> Obstacle | None:
    """Return why this client cannot be asked in the response to this request; None if it can be asked."""
    session = exchange.session
    if session is None:
        return Obstacle.NOT_DECLARED
    if exchange.revision < exchange.deployment.settings.questions_since:
        return Obstacle.REVISION_TOO_EARLY
    if session.client[0].startswith(NON_RESUMING_CLIENTS):
        return Obstacle.NEVER_RESUMES
    if exchange.in_batch or not events.accepts_event_stream(exchange.http):
        return Obstacle.NO_EVENT_STREAM
    if exchange.deployment.mailbox is None:
        return Obstacle.NO_TABLE
    return None


def obstacle_to_using(exchange: Exchange, capabilities: Sequence[str]) -> Obstacle:
    """Return why a call could not use capabilities, for example "elicitation.form"."""
    declared = exchange.session.capabilities if exchange.session else {}
    if all(value_at(declared, *name.split(".")) is not None for name in capabilities):
        return obstacle_to_asking(exchange) or Obstacle.NOT_DECLARED
    can_declare = all(revisions.supports(exchange.revision, name) for name in capabilities)
    return Obstacle.NOT_DECLARED if can_declare else Obstacle.NOT_IN_REVISION
