"""The paths that need no authorization, because clients have no token yet when they ask."""

METADATA = "/.well-known/oauth-protected-resource"  # RFC 9728; clients try it with the endpoint's path, and without
METADATA_PATHS = frozenset({METADATA, f"{METADATA}/mcp"})
SIGN_IN_PATHS = frozenset({
    "/authorize", "/callback", "/token", "/register", "/revoke",
    "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/.well-known/jwks.json",
})  # fmt: skip
