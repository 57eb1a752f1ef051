"""The paths that need no authorization, because clients have no token yet when they ask."""

from __future__ import annotations

METADATA = "/.well-known/oauth-protected-resource"  # of the endpoint; with its path too
METADATA_PATHS = frozenset({METADATA, f"{METADATA}/mcp"})
SIGN_IN_PATHS = frozenset({
    "/authorize", "/callback", "/token", "/register", "/revoke",
    "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/.well-known/jwks.json",
})  # fmt: skip
