"""Refuses requests to the page's routes that the page itself did not send.

Any web page that the developer opens can send requests to 127.0.0.1. This is what stops them:

Host            must be this server's, against a name that resolves to 127.0.0.1 (DNS rebinding)
Origin          must be this server's, against pages of other servers
x-page-token    must hold the token of this run of the harness, which only the page's HTML contains

No response allows another origin to read it.
"""

import hmac

from mcp_functions.local.loopback import HOST, HttpRequest, HttpResponse, json_response

PROOF_HEADER = "x-page-token"
NAMES = (HOST, "localhost")  # the names of this machine that a browser may use
# require-trusted-types-for: a script of the page cannot turn a text of a server into HTML.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
)
SECURITY_HEADERS = (
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),  # the HTML holds the token of this run
)


class Guard:
    """Refuses requests that are not the page's own."""

    def __init__(self, port: int, token: str) -> None:
        """Accept the page at one port, with one token."""
        self._hosts = {f"{name}:{port}" for name in NAMES}
        self._home = f"http://{HOST}:{port}/"
        self._token = token.encode()

    def refuse_host(self, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a request for another host; None if it is for this one."""
        if request.header("host").lower() in self._hosts:
            return None
        return refusal(403, f"this page is at {self._home} only")

    def refuse_control(self, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a request that the page did not send; None if the page sent it."""
        refused = self.refuse_host(request)
        if refused:
            return refused
        if request.method != "POST":
            return refusal(405, "send a POST", ("allow", "POST"))
        if request.values("origin") != [f"http://{request.header('host').lower()}"]:
            return refusal(403, "the Origin is not this page")
        if not hmac.compare_digest(request.header(PROOF_HEADER).encode(), self._token):
            return refusal(403, "the token is not of this run: load the page again")
        if request.header("content-type").partition(";")[0].strip().lower() != "application/json":
            return refusal(415, "send application/json")
        return None


def refusal(status: int, message: str, *headers: tuple[str, str]) -> HttpResponse:
    """Make the response to a request that is refused."""
    return json_response(status, {"message": message}, *SECURITY_HEADERS, *headers)
