"""The errors of OAuth, as in {"error": "invalid_grant", "error_description": "the ID token has expired"}.

A description is a constant of this package, so a response and a log line may hold it. An OAuthError is raised `from
None`, because its cause may quote the request.
"""

from __future__ import annotations

from enum import StrEnum

from mcp_functions import observability


class ErrorCode(StrEnum):
    """The error codes of RFC 6749, 7009, 7591, 8707 and of OpenID Connect."""

    ACCESS_DENIED = "access_denied"
    CANNOT_REVOKE = "unsupported_token_type"
    INTERACTION_REQUIRED = "interaction_required"
    INVALID_CLIENT = "invalid_client"
    INVALID_CLIENT_METADATA = "invalid_client_metadata"
    INVALID_GRANT = "invalid_grant"
    INVALID_REDIRECT_URI = "invalid_redirect_uri"
    INVALID_REQUEST = "invalid_request"
    INVALID_SCOPE = "invalid_scope"
    INVALID_TARGET = "invalid_target"
    REQUEST_NOT_SUPPORTED = "request_not_supported"
    SERVER_ERROR = "server_error"
    TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type"
    UNSUPPORTED_RESPONSE_TYPE = "unsupported_response_type"


class OAuthError(Exception):
    """A request was refused.

    Attributes:
        code: the error code of OAuth.
        description: a constant sentence, for the client's developer and for the log.
        status: the status of the HTTP response.
    """

    def __init__(self, code: str, description: str, status: int = 400) -> None:
        """Keep what the response and the log need; the status of `invalid_client` is always 401 (RFC 6749, 5.2)."""
        super().__init__(description)
        self.code = code
        self.description = description
        self.status = 401 if code == ErrorCode.INVALID_CLIENT else status

    def parameters(self) -> dict[str, str]:
        """Return the members of a JSON response, or the parameters of a redirect (RFC 6749, 4.1.2.1 and 5.2)."""
        return {"error": self.code, "error_description": self.description}

    def note(self) -> None:
        """Note the description for the log line of the request."""
        observability.current().conclude("refused", self.description)
