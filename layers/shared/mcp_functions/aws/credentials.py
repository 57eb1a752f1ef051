"""Credentials of the environment, or (with SnapStart) of Lambda's credentials endpoint, which expire."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

from mcp_functions.aws.errors import MetadataRetrievalError
from mcp_functions.aws.signing import Credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REFRESH_SECONDS = 600.0  # before they expire
FETCH_SECONDS = 2.0
OK, HTTP_PORT = 200, 80


def from_environment(environ: Mapping[str, str]) -> Callable[[], Credentials]:
    """Return a function that returns the credentials of the environment, which last as long as the process."""
    credentials = Credentials(
        environ["AWS_ACCESS_KEY_ID"], environ["AWS_SECRET_ACCESS_KEY"], environ.get("AWS_SESSION_TOKEN") or None
    )
    return lambda: credentials


class ContainerCredentials:
    """Credentials of the endpoint that AWS_CONTAINER_CREDENTIALS_FULL_URI names, fetched again before they expire."""

    def __init__(
        self,
        address: str,
        path: str,
        token: str,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the address; no request is sent.

        Args:
            address: host and port.
            path: of the URL.
            token: the `authorization` header of the request.
            now: returns unix seconds.
            clock: returns monotonic seconds.

        """
        self._address, self._path, self._token, self._now, self._clock = address, path, token, now, clock
        self._lock = threading.Lock()
        self._latest: tuple[Credentials, float] | None = None

    def __call__(self) -> Credentials:
        """Return credentials that have not expired.

        Raises:
            MetadataRetrievalError: the endpoint returned none, and the earlier ones have expired.

        """
        with self._lock:
            if self._latest is None or self._latest[1] - self._now() < REFRESH_SECONDS:
                self._latest = self._renew()
            return self._latest[0]

    def _renew(self) -> tuple[Credentials, float]:
        try:
            return self._fetch()
        except Exception:  # noqa: BLE001 - any error of the response; its text may hold a secret
            if self._latest and self._latest[1] > self._now():
                return self._latest
            raise MetadataRetrievalError from None

    def _fetch(self) -> tuple[Credentials, float]:
        from calendar import timegm  # noqa: PLC0415 - only where credentials are fetched

        from mcp_functions.aws.connection import Deadline, open_connection  # noqa: PLC0415

        host, _colon, port = self._address.partition(":")
        deadline = Deadline.after(FETCH_SECONDS, self._clock)
        connection = open_connection(
            host, int(port or HTTP_PORT), None, connect_seconds=FETCH_SECONDS, deadline=deadline
        )
        try:
            connection.request("GET", self._path, headers={"authorization": self._token} if self._token else {})
            response = connection.getresponse()
            document: dict[str, Any] = json.loads(response.read())
        finally:
            connection.close()
        if response.status != OK:
            raise MetadataRetrievalError
        expiration = timegm(time.strptime(document["Expiration"][:19], "%Y-%m-%dT%H:%M:%S"))
        return Credentials(document["AccessKeyId"], document["SecretAccessKey"], document.get("Token")), expiration
