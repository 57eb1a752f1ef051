"""The client secret with which this authorization server authenticates at the OpenID Connect provider.

Secrets Manager holds the secret, as a text or as a JSON object: {"client_secret": "…"}. It stays in memory for some
minutes.
"""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING

from mcp_functions import aws
from mcp_functions.aws.errors import read_failure
from mcp_functions.protocol.errors import Misconfigured, service_error
from mcp_functions.seal.resets import register_for_reset

if TYPE_CHECKING:
    from collections.abc import Callable

SERVICE = "secretsmanager"
FRESH_SECONDS = 300  # then the secret is read again, because it may have been rotated
MEMBERS = ("client_secret", "ClientSecret", "secret")  # of a JSON object, the first one first
LIMITS = aws.CallLimits(connect_seconds=1.0, read_seconds=2.0, attempts=2)


class ClientSecret:
    """The secret that this server has as a client of the provider."""

    def __init__(self, arn: str, now: Callable[[], float]) -> None:
        """Keep the arguments; the first `get` reads the secret. `arn` is "" if this server is a public client."""
        self._arn = arn
        self._now = now
        self.reset()
        register_for_reset(self)

    def reset(self) -> None:
        """Forget the secret: a snapshot of the environment (Lambda SnapStart) must not hold it."""
        self._lock = Lock()
        self._secret = ""
        self._fresh_until = 0.0

    def get(self) -> str:
        """Return the secret; "" if there is none."""
        if not self._arn:
            return ""
        with self._lock:
            if self._now() >= self._fresh_until:
                self._secret = _client_secret(_read(self._arn))
                self._fresh_until = self._now() + FRESH_SECONDS
            return self._secret


def _read(arn: str) -> str:
    client = aws.make_client(SERVICE, LIMITS)
    try:
        return str(client.get_secret_value(SecretId=arn)["SecretString"])
    except (KeyError, ValueError, TypeError):  # the cause could quote the secret
        raise Misconfigured(reason=f"{SERVICE}:UnexpectedAnswer") from None
    except Exception as error:  # noqa: BLE001 - botocore's, whose text may quote the request
        raise service_error(SERVICE, read_failure(error)) from None
    finally:
        client.close()


def _client_secret(text: str) -> str:
    """Return the client secret: a member of a JSON object, or the whole text."""
    try:
        content = json.loads(text)
    except ValueError:  # the text is no JSON
        content = None
    if not isinstance(content, dict):
        return text.strip()
    for name in MEMBERS:
        secret = content.get(name)
        if secret and isinstance(secret, str):
            return secret
    raise Misconfigured(reason="the secret is a JSON object without the member client_secret")
