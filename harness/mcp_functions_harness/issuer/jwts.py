"""JSON Web Tokens signed with RS256: "API Gateway currently supports only RSA-based algorithms"."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from mcp_functions.protocol.json_writer import base64url

ALGORITHM = "RS256"
KEY_BITS = 2048
EXPONENT = 65537  # the usual public exponent of RSA


class Signer:
    """Signs tokens with a key that exists only in memory."""

    def __init__(self) -> None:
        """Make a key."""
        self._key = rsa.generate_private_key(public_exponent=EXPONENT, key_size=KEY_BITS)
        public = self._key.public_key().public_numbers()
        modulus = _number(public.n)
        exponent = _number(public.e)
        # The "kid" is the key's thumbprint (RFC 7638), so a new key gets a new one.
        members = json.dumps({"e": exponent, "kty": "RSA", "n": modulus}, separators=(",", ":"))
        self._id = base64url(hashlib.sha256(members.encode()).digest())
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
        return f"{signed}.{base64url(signature)}"


def _number(value: int) -> str:
    """Return a number as its bytes in base64url, as a JSON Web Key has it."""
    return base64url(value.to_bytes((value.bit_length() + 7) // 8))


def _json(value: Mapping[str, Any]) -> str:
    return base64url(json.dumps(value, separators=(",", ":")).encode())
