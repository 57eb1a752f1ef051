"""Pseudonyms of callers: an operator sees in the log that one caller comes again, and can stop that caller.

A pseudonym is `<month>.<digest>`. The digest is an HMAC of the caller under a key of the month, which KMS derives from
the stack's HMAC key. So all functions give a caller the same name, and lines of two months cannot be joined.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from mcp_functions import observability
from mcp_functions.protocol.errors import CallerStopped, McpError, TemporarilyUnavailable
from mcp_functions.protocol.json_writer import base64url
from mcp_functions.seal.kms import KmsKey, kms_client
from mcp_functions.seal.resets import register_for_reset

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

LABEL = b"mcp-functions/callers/"  # the key of a month is KMS's HMAC of this and the month
DIGEST_BYTES = 12  # enough to tell callers apart
PAUSE_SECONDS = 60  # after a failure, KMS is not called for this time: requests must not wait for a name


@cache
def pseudonyms(key_arn: str) -> Pseudonyms:
    """Return the pseudonyms of a deployment, whose keys live as long as the container."""
    return Pseudonyms(key_arn)


class Pseudonyms:
    """The names of callers under one HMAC key of KMS, which is asked once for each month."""

    def __init__(self, key_arn: str, client: Callable[[], object] = kms_client) -> None:
        """Use a key by ARN; nothing is called."""
        self._key = KmsKey(key_arn, client)
        self.reset()
        register_for_reset(self)

    def reset(self) -> None:
        """Forget the keys and the failures of KMS."""
        self._key_of_month: dict[str, bytes] = {}
        self._retry_at = 0.0  # the time in unix seconds before which KMS is not called

    def admit(self, caller: str, stopped: Collection[str], now: float) -> None:
        """Note the caller's pseudonym of this month, and refuse a stopped caller.

        Args:
            caller: the caller's id (`binding.caller_id`).
            stopped: the pseudonyms of stopped callers, of this month or of earlier ones.
            now: the current time in unix seconds.

        Raises:
            CallerStopped: the caller has one of these pseudonyms.
            TemporarilyUnavailable: some callers are stopped, and KMS cannot make the key that names them.
            Misconfigured: some callers are stopped, and IAM denies the function that key.
        """
        with suppress(McpError):  # a name for the log must not cost a request
            observability.current().caller = self.name(caller, month(now), now)
        # An operator may have copied the pseudonym from a line of an earlier month, so the caller's names of all the
        # months that occur are compared.
        months = {pseudonym.partition(".")[0] for pseudonym in stopped}
        for in_month in months:
            if self.name(caller, in_month, now) in stopped:
                raise CallerStopped

    def name(self, caller: str, in_month: str, now: float) -> str:
        """Return the pseudonym of a caller in a month, "2026-11".

        Raises:
            TemporarilyUnavailable, Misconfigured: KMS does not derive the month's key.
        """
        key = self._key_of_month.get(in_month)
        if key is None:
            key = self._derive(in_month, now)
        digest = hmac.digest(key, caller.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return f"{in_month}.{base64url(digest[:DIGEST_BYTES])}"

    def _derive(self, in_month: str, now: float) -> bytes:
        """Ask KMS for the key of a month, and keep it."""
        if now < self._retry_at:
            raise TemporarilyUnavailable(reason="kms:caller_key")
        try:
            with observability.KmsTimer():
                key = self._key.mac(LABEL + in_month.encode())
        except McpError:
            self._retry_at = now + PAUSE_SECONDS
            raise
        self._key_of_month[in_month] = key
        return key


def month(now: float) -> str:
    """Return the month of a time in unix seconds, in UTC: "2026-11"."""
    return time.strftime("%Y-%m", time.gmtime(now))
