"""The paths that need no authorization, because clients have no token yet when they ask."""

from __future__ import annotations

METADATA = "/.well-known/oauth-protected-resource"  # of the endpoint; with its path too
# of the sign-in front, by the names of their events in template.yaml
SIGN_IN_ROUTES = {
    "Authorize": "/authorize",
    "Callback": "/callback",
    "Token": "/token",
    "Register": "/register",
    "Revoke": "/revoke",
    "ServerMetadata": "/.well-known/oauth-authorization-server",
    "OpenidMetadata": "/.well-known/openid-configuration",
    "Keys": "/.well-known/jwks.json",
}
