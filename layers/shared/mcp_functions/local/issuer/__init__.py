"""A local authorization server: it signs everybody in at once, and gives out real tokens, for this machine alone.

It is what an official client needs to begin: metadata (RFC 8414), dynamic registration (RFC 7591), the authorization
code flow with PKCE (RFC 7636) and resource indicators (RFC 8707), refresh tokens that rotate, and a JWKS. Nothing of it
is a promise: whoever reaches loopback may have a token for anybody.
"""

from __future__ import annotations

from mcp_functions.local.issuer.endpoints import Issuer

__all__ = ["MAX_REQUEST", "Issuer"]

MAX_REQUEST = 64 * 1024  # bytes of a body
