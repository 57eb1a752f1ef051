"""A local authorization server: it signs every user in without a question, and issues real tokens for this machine.

It has the parts that an official client needs: metadata (RFC 8414), dynamic registration (RFC 7591), the authorization
code flow with PKCE (RFC 7636) and resource indicators (RFC 8707), rotating refresh tokens, and a set of public keys.
With AuthMode oauth, the project's function functions/oauth (the sign-in front) is the clients' authorization server.
Then this one stands behind it as an OpenID Connect provider, with ID tokens, revocation (RFC 7009) and a client secret.

It protects nothing: every process that reaches loopback can get a token for every user.
"""

from __future__ import annotations

from mcp_functions.local.issuer.endpoints import USER, Behaviour, Issuer

__all__ = ["MAX_REQUEST", "USER", "Behaviour", "Issuer"]

MAX_REQUEST = 64 * 1024  # bytes of a request's body
