"""TypedDicts of the JSON documents of OAuth, as far as this server reads or writes them. Only type checkers use them.

Others write most of these documents, so the modules that read them check what they need.
"""

from __future__ import annotations

from typing import TypedDict


class Jwk(TypedDict, total=False):
    """A public key (RFC 7517, section 4). An RSA key has `n` and `e`; an elliptic one `crv`, `x` and `y`."""

    kty: str
    use: str
    alg: str
    kid: str
    n: str
    e: str
    crv: str
    x: str
    y: str


class KeySet(TypedDict):
    """A JWK set (RFC 7517, section 5)."""

    keys: list[Jwk]


class JoseHeader(TypedDict, total=False):
    """The header of a token (RFC 7515, section 4.1)."""

    alg: str
    kid: str
    crit: list[str]


class TokenClaims(TypedDict, total=False):
    """The claims of a token that this server reads (RFC 7519, 4.1; OpenID Connect Core, 2). It may have others."""

    iss: str
    sub: str
    aud: str | list[str]
    exp: float  # unix seconds, as the next two
    nbf: float
    iat: float
    azp: str
    nonce: str


class ClientMetadata(TypedDict, total=False):
    """The metadata of a client (RFC 7591, section 2). In MCP_OAUTH_CLIENTS it also has the digest of a secret."""

    client_id: str
    client_name: str
    client_secret_sha256: str
    redirect_uris: list[str]
    grant_types: list[str]
    response_types: list[str]
    token_endpoint_auth_method: str
    jwks: KeySet
    jwks_uri: str


class ClientInformation(ClientMetadata, total=False):
    """The response to a registration (RFC 7591, section 3.2.1)."""

    client_id_issued_at: int
    client_secret: str
    client_secret_expires_at: int


class ProviderMetadata(TypedDict, total=False):
    """The metadata of an authorization server (RFC 8414, 2; OpenID Connect Discovery, 3): the provider's, or ours."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    revocation_endpoint: str
    registration_endpoint: str
    jwks_uri: str
    scopes_supported: list[str]
    response_types_supported: list[str]
    response_modes_supported: list[str]
    grant_types_supported: list[str]
    code_challenge_methods_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    token_endpoint_auth_signing_alg_values_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    authorization_response_iss_parameter_supported: bool
    client_id_metadata_document_supported: bool
    protected_resources: list[str]
    subject_types_supported: list[str]
    id_token_signing_alg_values_supported: list[str]


class TokenResponse(TypedDict, total=False):
    """The response of a token endpoint (RFC 6749, section 5.1; OpenID Connect Core, 3.1.3.3)."""

    access_token: str
    token_type: str
    expires_in: int
    scope: str
    refresh_token: str
    id_token: str


class CodeClaims(TypedDict):
    """What our code holds: the provider's code, and the sign-in that it belongs to."""

    code: str
    seed: str
    challenge: str
    scope: str
    redirect: str


class RefreshClaims(TypedDict):
    """What our refresh token holds: the provider's, and the scope that the user granted."""

    token: str
    scope: str
