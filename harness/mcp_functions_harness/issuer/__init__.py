"""A local authorization server (the `iss` of tokens): it signs in every user, and signs real tokens for this machine.

It protects nothing: every process that reaches loopback can get a token for every user.

AuthMode jwt      MCP clients use it directly: metadata (RFC 8414), registration (RFC 7591), codes with PKCE (RFC 7636),
                  resource indicators (RFC 8707), refresh tokens that rotate, and a set of public keys
AuthMode oauth    the function functions/oauth, the authorization server for MCP clients (`mcp_functions.oauth`), uses
                  it as its OpenID Connect provider: also ID tokens and revocation (RFC 7009)
"""

from __future__ import annotations

from mcp_functions_harness.issuer.endpoints import USER, Issuer

__all__ = ["MAX_REQUEST", "USER", "Issuer"]

MAX_REQUEST = 64 * 1024  # bytes of a request's body
