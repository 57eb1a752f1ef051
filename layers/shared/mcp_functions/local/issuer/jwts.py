"""JSON Web Tokens signed with RS256: "API Gateway currently supports only RSA-based algorithms"."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

if TYPE_CHECKING:
    from collections.abc import Mapping

ALGORITHM = "RS256"
KEY_BITS = 2048
EXPONENT = 65537


class BadToken(ValueError):
    """The text is no token, or no key of the set signed it; the message names the reason."""


class Signer:
    """Signs tokens with a key that exists only in memory."""

    def __init__(self) -> None:
        """Make a key."""
        self._key = rsa.generate_private_key(public_exponent=EXPONENT, key_size=KEY_BITS)
        public = self._key.public_key().public_numbers()
        modulus, exponent = _number(public.n), _number(public.e)
        # the "kid" is the key's thumbprint (RFC 7638), so a new key gets a new one
        thumbprint = json.dumps({"e": exponent, "kty": "RSA", "n": modulus}, separators=(",", ":"))
        self._id = encode(hashlib.sha256(thumbprint.encode()).digest())
        self._public = {"kty": "RSA", "use": "sig", "alg": ALGORITHM, "kid": self._id, "n": modulus, "e": exponent}

    @property
    def jwks(self) -> dict[str, Any]:
        """The set of public keys (RFC 7517)."""
        return {"keys": [dict(self._public)]}

    def sign(self, claims: Mapping[str, Any]) -> str:
        """Make a token."""
        header = {"alg": ALGORITHM, "kid": self._id, "typ": "at+jwt"}
        signed = f"{_json(header)}.{_json(claims)}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), SHA256())
        return f"{signed}.{encode(signature)}"


def read(token: str, jwks: Mapping[str, Any]) -> dict[str, Any]:
    """Verify a token's signature and return its claims, which are not checked.

    Args:
        token: in three parts, as a client sent it.
        jwks: the keys of its issuer.

    Raises:
        BadToken: the signature cannot be verified.
    """
    try:
        signed, _, signature = token.rpartition(".")
        header, claims = (json.loads(decode(part)) for part in signed.split("."))
        # the verifier chooses the algorithm: a token with another one, or none, has no key
        wanted = (ALGORITHM, header["alg"], header["kid"])
        key = next(key for key in jwks["keys"] if (key["alg"], ALGORITHM, key["kid"]) == wanted)
        _public_key(key).verify(decode(signature), signed.encode(), padding.PKCS1v15(), SHA256())
    except InvalidSignature:
        reason = "signature verification failed"
    except StopIteration:
        reason = "unknown key or signing method"
    except (ValueError, TypeError, KeyError, RecursionError):
        reason = "token is malformed"
    else:
        if isinstance(claims, dict):
            return claims
        reason = "token is malformed"
    raise BadToken(reason)


def encode(data: bytes) -> str:
    """Encode as base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    """Decode base64url without padding.

    Raises:
        ValueError: the text is not base64url.
    """
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _public_key(key: Mapping[str, str]) -> rsa.RSAPublicKey:
    modulus, exponent = (int.from_bytes(decode(key[name])) for name in ("n", "e"))
    return rsa.RSAPublicNumbers(exponent, modulus).public_key()


def _number(value: int) -> str:
    return encode(value.to_bytes((value.bit_length() + 7) // 8))


def _json(value: Mapping[str, Any]) -> str:
    return encode(json.dumps(value, separators=(",", ":")).encode())
