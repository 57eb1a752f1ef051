"""Pseudonyms of callers: an operator sees in the log that one caller comes again, and can stop that caller.

    caller id    an issuer and a subject, or the network of an IP address: never logged
    pseudonym    2026-11.fbIZn1rBHzMDjVTr
                 |       └ HMAC of the caller id, under the key of this month
                 └ month, in UTC

KMS derives the key of a month from the stack's HMAC key. So a caller has the same pseudonym in all functions, and
nobody can join the log lines of two months.
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

LABEL = b"mcp-functions/callers/"  # the key of a month is KMS's HMAC of this label and the month
DIGEST_BYTES = 12  # of the HMAC's 32; enough to tell callers apart
PAUSE_SECONDS = 60  # after a failure, KMS is not called, because each request would wait for it


@cache
def pseudonyms(key_arn: str) -> Pseudonyms:
    """Return the pseudonyms under an HMAC key; a container has one such object, with the keys of the months."""
    return Pseudonyms(key_arn)


class Pseudonyms:
    """Makes the pseudonyms of callers. KMS is called once for each month."""

    def __init__(self, key_arn: str, client: Callable[[], object] = kms_client) -> None:
        """Use the HMAC key with this ARN; KMS is not called yet."""
        self._hmac_key = KmsKey(key_arn, client)
        self.reset()
        register_for_reset(self)

    def reset(self) -> None:
        """Forget the keys of the months, and that KMS failed."""
        self._month_keys: dict[str, bytes] = {}
        self._retry_at = 0.0  # the time in unix seconds before which KMS is not called

    def log_caller(self, caller_id: str, now: float) -> None:
        """Put the caller's pseudonym of this month into the log line of the request; without KMS the line has none."""
        month = time.strftime("%Y-%m", time.gmtime(now))
        with suppress(McpError):  # a request does not fail because its log line lacks a field
            observability.current().caller = self.pseudonym(caller_id, month, now)

    def refuse_stopped_caller(self, caller_id: str, stopped: Collection[str], now: float) -> None:
        """Refuse a caller whom the operator stopped.

        Raises:
            CallerStopped: the caller has one of the pseudonyms in `stopped`.
            TemporarilyUnavailable, Misconfigured: KMS gives no key, so nobody knows whether this caller is stopped.
        """
        # The operator copied each pseudonym from a log line, perhaps of an earlier month.
        months = {pseudonym.partition(".")[0] for pseudonym in stopped}
        for month in months:
            if self.pseudonym(caller_id, month, now) in stopped:
                raise CallerStopped

    def pseudonym(self, caller_id: str, month: str, now: float) -> str:
        """Return the pseudonym of a caller in a month, "2026-11".

        Raises:
            TemporarilyUnavailable: KMS does not answer, or failed less than `PAUSE_SECONDS` ago.
            Misconfigured: IAM denies the function the HMAC key.
        """
        key = self._month_keys.get(month) or self._derive(month, now)
        digest = hmac.digest(key, caller_id.encode("utf-8", "surrogatepass"), hashlib.sha256)
        return f"{month}.{base64url(digest[:DIGEST_BYTES])}"

    def _derive(self, month: str, now: float) -> bytes:
        """Have KMS derive the key of a month, and keep the key."""
        if now < self._retry_at:
            raise TemporarilyUnavailable(reason="kms:caller_key")
        try:
            with observability.kms_call():
                key = self._hmac_key.mac(LABEL + month.encode())
        except McpError:
            self._retry_at = now + PAUSE_SECONDS
            raise
        self._month_keys[month] = key
        return key
