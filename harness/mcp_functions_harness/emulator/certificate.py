"""The certificate of AWS's host names on this machine; only a process that loads it trusts it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DAY = timedelta(days=1)


def write_certificate(path: Path, *hosts: str) -> Path:
    """Write a key and its self-signed certificate for hosts, e.g. "*.execute-api.us-east-1.amazonaws.com"."""
    key = ec.generate_private_key(ec.SECP256R1())
    unencrypted = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unencrypted)
    path.write_bytes(private + _certificate(key, hosts).public_bytes(serialization.Encoding.PEM))
    path.chmod(0o600)
    return path


def _certificate(key: ec.EllipticCurvePrivateKey, hosts: Sequence[str]) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the emulator of AWS on this machine")])
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
