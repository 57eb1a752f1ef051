"""Codes and statuses that 2026-07-28 retired, and that its predecessors still expect."""

from __future__ import annotations

from mcp_functions.protocol.errors import InternalError, InvalidRequest

RESOURCE_NOT_FOUND = -32002  # server/resources of all three: "Resource not found: -32002"
URL_ELICITATION_REQUIRED = -32042  # 2025-11-25, client/elicitation


class SessionNotFound(InvalidRequest):
    """One frozen answer for every session that is no good; why, only the log knows (`reason`).

    "it MUST respond to requests containing that session ID with HTTP 404 Not Found": then the client starts again.
    """

    status, sentence = 404, "Session not found: initialize again"


class NothingAsked(InvalidRequest):
    """A response to a question that this server never asked of this client."""

    sentence = "Nothing was asked under this id"


class WaitedInVain(InternalError):
    """The conversation is over for a client that still waits: nobody answered in time, or it was cancelled."""

    status, sentence = 200, "The call has ended: its question was not answered in time"


class ResultLost(InternalError):
    """The call was done, and its result cannot be handed over."""

    status, sentence = 200, "The call was done, but its result is too large to be kept for this client"
