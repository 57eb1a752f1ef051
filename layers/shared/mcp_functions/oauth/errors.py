"""The errors of OAuth, as in {"error": "invalid_grant", "error_description": "the ID token has expired"}.

A function of this package raises an OAuthError if it refuses a request, and an McpError if KMS, the provider or a site
does not answer, or the budget of the caller is empty. `function` makes responses of both.

A description is a constant of this package, so a response and a log line may hold it. An OAuthError is raised `from
None`, because its cause may quote the request.
"""

from __future__ import annotations

from mcp_functions import observability


class OAuthError(Exception):
    """A request was refused.

    Attributes:
        code: an error code of RFC 6749, 7009, 7591, 8707 or OpenID Connect.
        description: a constant sentence, for the client's developer and for the log.
        status: the status of the HTTP response.
    """

    def __init__(self, code: str, description: str, status: int = 400) -> None:
        """Keep what the response and the log need; the status of `invalid_client` is always 401 (RFC 6749, 5.2)."""
        super().__init__(description)
        self.code = code
        self.description = description
        self.status = 401 if code == "invalid_client" else status

    def parameters(self) -> dict[str, str]:
        """Return the members of a JSON response, or the parameters of a redirect (RFC 6749, 4.1.2.1 and 5.2)."""
        return {"error": self.code, "error_description": self.description}

    def note(self) -> None:
        """Note the description for the log line of the request."""
        observability.current().conclude("refused", self.description)
