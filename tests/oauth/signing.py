"""Keys with which tests sign tokens and assertions, which the server must verify or refuse."""

from __future__ import annotations

import base64
import hmac
import json
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA256

if TYPE_CHECKING:
    from collections.abc import Mapping


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int) -> str:
    return encode(value.to_bytes((value.bit_length() + 7) // 8))


class Signer:
    """A key, RS256 or ES256, and its JWK set."""

    def __init__(self, algorithm: str, *, bits: int = 2048, key_id: str = "1") -> None:
        self.algorithm = algorithm
        self.key_id = key_id
        self._rsa = rsa.generate_private_key(65537, bits) if algorithm == "RS256" else None
        self._elliptic = ec.generate_private_key(ec.SECP256R1())

    @property
    def jwks(self) -> dict[str, Any]:
        if self._rsa:
            public = self._rsa.public_key().public_numbers()
            return {"keys": [{"kty": "RSA", "n": number(public.n), "e": number(public.e), "kid": self.key_id}]}
        point = self._elliptic.public_key().public_numbers()
        x, y = (encode(value.to_bytes(32)) for value in (point.x, point.y))
        return {"keys": [{"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": self.key_id}]}

    def sign(self, claims: Mapping[str, Any], **header: str) -> str:
        signed = _signed({"alg": self.algorithm, "kid": self.key_id, **header}, claims)
        if self._rsa:
            return f"{signed}.{encode(self._rsa.sign(signed.encode(), padding.PKCS1v15(), SHA256()))}"
        r, s = utils.decode_dss_signature(self._elliptic.sign(signed.encode(), ec.ECDSA(SHA256())))
        return f"{signed}.{encode(r.to_bytes(32) + s.to_bytes(32))}"

    def confused(self, claims: Mapping[str, Any]) -> str:
        """Sign with the public key as the secret of HS256 (RFC 8725, 2.1)."""
        signed = _signed({"alg": "HS256", "kid": self.key_id}, claims)
        return f"{signed}.{encode(hmac.digest(json.dumps(self.jwks).encode(), signed.encode(), 'sha256'))}"


def _signed(header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    return ".".join(encode(json.dumps(part).encode()) for part in (header, claims))
