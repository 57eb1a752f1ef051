"""The errors that only clients of 2025 get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_functions.protocol.errors import InternalError, InvalidRequest

if TYPE_CHECKING:
    from mcp_functions.protocol.event_types import Response

RESOURCE_NOT_FOUND = -32002  # 2025-11-25, server/resources, "Error Handling"
URL_ELICITATION_REQUIRED = -32042  # client/elicitation, "URL Elicitation Required Error"


class SessionNotFound(InvalidRequest):
    """The session id is invalid. Every cause gets the same answer; only the log knows the `reason`.

    "it MUST respond to requests containing that session ID with HTTP 404 Not Found" (2025-11-25, basic/transports,
    "Session Management"): the client then starts again.
    """

    status = 404
    default_message = "Session not found: initialize again"


class UnknownQuestion(InvalidRequest):
    """A response has an id under which this server never asked this client anything."""

    default_message = "The server asked no question with this id"


class QuestionExpired(InternalError):
    """The call ended while its client still waits: the answer came too late, or the call was cancelled."""

    default_message = "The call has ended: its question was not answered in time"


class OutcomeLost(InternalError):
    """The function ran, and KMS or the table did not let this server keep what came of it."""

    default_message = "The call ran, but its result or its next question could not be kept for this client"


class ResultLost(InternalError):
    """The function finished the call, and the table cannot keep its result."""

    default_message = "The call was done, but its result is too large to be kept for this client"


class AccessDenied(Exception):
    """The access token of a request does not suffice for the next round of its call, which waits for another token."""

    def __init__(self, response: Response) -> None:
        """Keep the HTTP response 401 or 403, which tells the client what its token lacks."""
        super().__init__()
        self.response = response
