"""Who signs: Lambda's variables, or (with SnapStart) its endpoint of credentials, which end and are fetched anew."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

from mcp_functions.aws.errors import MetadataRetrievalError
from mcp_functions.aws.signing import Credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REFRESH_SECONDS = 600.0  # before they end
FETCH_SECONDS = 2.0
OK, HTTP_PORT = 200, 80


def given(environ: Mapping[str, str]) -> Callable[[], Credentials]:
    """Take the credentials that stand in the environment; they last as long as it does."""
    found = Credentials(
        environ["AWS_ACCESS_KEY_ID"], environ["AWS_SECRET_ACCESS_KEY"], environ.get("AWS_SESSION_TOKEN") or None
    )
    return lambda: found


class Fetched:
    """Credentials of the endpoint that AWS_CONTAINER_CREDENTIALS_FULL_URI names, fetched before they end."""

    def __init__(
        self,
        host: str,
        path: str,
        token: str,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember where they are; none are fetched.

        Args:
            host: with its port.
            path: of the URL.
            token: that says who asks.
            now: unix seconds.
            clock: seconds, only ever forward.

        """
        self._host, self._path, self._token, self._now, self._clock = host, path, token, now, clock
        self._lock = threading.Lock()
        self._found: tuple[Credentials, float] | None = None

    def __call__(self) -> Credentials:
        """Return credentials that are good for a while.

        Raises:
            MetadataRetrievalError: there are none.

        """
        with self._lock:
            if self._found is None or self._found[1] - self._now() < REFRESH_SECONDS:
                self._found = self._renewed()
            return self._found[0]

    def _renewed(self) -> tuple[Credentials, float]:
        try:
            return self._fetch()
        except Exception:  # noqa: BLE001 - whatever was wrong with the answer, its words are not for a log
            if self._found and self._found[1] > self._now():
                return self._found
            raise MetadataRetrievalError from None

    def _fetch(self) -> tuple[Credentials, float]:
        from mcp_functions.aws.connection import Deadline, connect  # noqa: PLC0415 - only where credentials are fetched

        host, _colon, port = self._host.partition(":")
        deadline = Deadline.after(FETCH_SECONDS, self._clock)
        connection = connect(host, int(port or HTTP_PORT), None, each=FETCH_SECONDS, deadline=deadline)
        try:
            connection.request("GET", self._path, headers={"authorization": self._token} if self._token else {})
            answer = connection.getresponse()
            said = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status != OK:
            raise MetadataRetrievalError
        return Credentials(said["AccessKeyId"], said["SecretAccessKey"], said.get("Token")), _ends(said)


def _ends(said: Mapping[str, Any]) -> float:
    from calendar import timegm  # noqa: PLC0415 - as above

    return timegm(time.strptime(said["Expiration"][:19], "%Y-%m-%dT%H:%M:%S"))
