"""JSON Web Tokens that others signed: a provider's ID tokens, and assertions of clients (RFC 7515, 7517, 7519).

    token     header "." claims "." signature, each as base64url
    signed    header "." claims: the part that the signature covers
    key set   {"keys": [key, …]}

This module checks the signature alone: callers of `verify` check the claims.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, cast

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.oauth.json_types import JoseHeader, Jwk, KeySet, TokenClaims

RSA = "RS256"
ELLIPTIC = "ES256"
ALGORITHMS = (RSA, ELLIPTIC)  # "none" and the symmetric algorithms are not among them
KEY_TYPES = {RSA: "RSA", ELLIPTIC: "EC"}  # algorithm -> `kty` of its keys
MAX_CHARS = 16 * 1024  # a longer token is refused before it is read
MIN_RSA_BITS = 2048  # RFC 7518, section 3.3
MAX_RSA_BITS = 8192  # a longer key would take too long to use
COORDINATE_BYTES = 32  # of a coordinate on the curve P-256, and of each half of an ES256 signature


class ParsedToken(NamedTuple):
    """A token whose signature is not verified yet."""

    header: JoseHeader
    claims: TokenClaims
    signed: bytes  # the part of the text that the signature covers
    signature: bytes


class BadToken(Exception):
    """A token cannot be verified; the text is one of the constants below, which a client may get."""


MALFORMED = "the token is malformed"
UNSUPPORTED = "the algorithm of the token is not supported"
UNSIGNED = "no key has signed the token"


class UnknownKey(BadToken):
    """No key of the set has the token's id: the owner of the keys may have changed them since they were read."""


def unverified_claims(token: object) -> TokenClaims:
    """Return the claims of a token whose signature is not checked, or raise a BadToken."""
    return _parse(token).claims


def verify_with(read_keys: Callable[..., KeySet], token: object) -> TokenClaims:
    """Return the claims of a token as `verify` does. `read_keys(again=True)` reads keys that are not in memory."""
    try:
        return verify(token, read_keys())
    except UnknownKey:
        return verify(token, read_keys(again=True))


def verify(token: object, key_set: KeySet) -> TokenClaims:
    """Return the claims of a token that a key of a key set has signed; the claims are not checked.

    Raises:
        UnknownKey: the set may be too old.
        BadToken: no key of the set has signed it.
    """
    parsed = _parse(token)
    # RFC 7515, 4.1.11: a token with an extension in `crit` that is not understood is invalid. None is understood here.
    if parsed.header.get("alg") not in ALGORITHMS or "crit" in parsed.header:
        raise BadToken(UNSUPPORTED)
    listed = key_set.get("keys")
    keys = [key for key in listed if isinstance(key, dict)] if isinstance(listed, list) else []
    for key in keys:
        if _may_have_signed(key, parsed.header) and _has_signed(key, parsed):
            return parsed.claims
    # A token without an id may be of any key, so of a new one, too.
    has_known_id = "kid" in parsed.header and any(key.get("kid") == parsed.header["kid"] for key in keys)
    raise BadToken(UNSIGNED) if has_known_id else UnknownKey(UNSIGNED)


def audiences(claims: TokenClaims) -> list[str]:
    """Return the texts in the claim `aud`, which is one text or a list (RFC 7519, section 4.1.3)."""
    audience = claims.get("aud")
    named = audience if isinstance(audience, list) else [audience]
    return [name for name in named if isinstance(name, str)]


def _parse(token: object) -> ParsedToken:
    if not isinstance(token, str) or len(token) > MAX_CHARS:
        raise BadToken(MALFORMED)
    try:
        header_text, claims_text, signature_text = token.split(".")
        header = json.loads(_decode(header_text))
        claims = json.loads(_decode(claims_text))
        signature = _decode(signature_text)
    # ValueError: not three parts, not base64url, or not JSON. RecursionError: JSON that is nested too deep.
    except (ValueError, RecursionError):
        raise BadToken(MALFORMED) from None  # the cause could quote the token
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise BadToken(MALFORMED)
    return ParsedToken(
        cast("JoseHeader", header), cast("TokenClaims", claims), f"{header_text}.{claims_text}".encode(), signature
    )


def _may_have_signed(key: Jwk, header: JoseHeader) -> bool:
    """Check whether a key is for the header's algorithm, for signatures, and has the header's id.

    The key decides about the algorithm, because an attacker writes the header (RFC 8725, section 3.1).
    """
    algorithm = header["alg"]
    if key.get("kty") != KEY_TYPES[algorithm] or key.get("alg", algorithm) != algorithm:
        return False
    if key.get("use", "sig") != "sig":
        return False
    # A header without `kid` does not say which key has signed, so every key is tried.
    return "kid" not in header or key.get("kid") == header["kid"]


def _has_signed(key: Jwk, token: ParsedToken) -> bool:
    verify_signature = _verify_rsa if token.header["alg"] == RSA else _verify_elliptic
    try:
        verify_signature(key, token.signed, token.signature)
    # A stranger wrote the key: it may lack a member, have one that is no text, or be one that cannot be used.
    except (InvalidSignature, KeyError, TypeError, AttributeError, ValueError, UnsupportedAlgorithm):
        return False
    return True


def _verify_rsa(key: Jwk, signed: bytes, signature: bytes) -> None:
    """Return if the key has signed, and raise one of the exceptions that `_has_signed` catches if it has not."""
    numbers = rsa.RSAPublicNumbers(_integer(key["e"]), _integer(key["n"]))
    if not MIN_RSA_BITS <= numbers.n.bit_length() <= MAX_RSA_BITS:
        raise ValueError
    numbers.public_key().verify(signature, signed, padding.PKCS1v15(), SHA256())


def _verify_elliptic(key: Jwk, signed: bytes, signature: bytes) -> None:
    """Do the same as `_verify_rsa`. The signature is two numbers, one after the other (RFC 7518, section 3.4)."""
    if key["crv"] != "P-256" or len(signature) != 2 * COORDINATE_BYTES:
        raise ValueError
    numbers = ec.EllipticCurvePublicNumbers(_integer(key["x"]), _integer(key["y"]), ec.SECP256R1())
    r = int.from_bytes(signature[:COORDINATE_BYTES])
    s = int.from_bytes(signature[COORDINATE_BYTES:])
    numbers.public_key().verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(SHA256()))


def _integer(text: str) -> int:
    """Read a number of a key: big-endian bytes in base64url."""
    return int.from_bytes(_decode(text))


def _decode(text: str) -> bytes:
    """Decode base64url without padding; a ValueError says that the text is none."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
