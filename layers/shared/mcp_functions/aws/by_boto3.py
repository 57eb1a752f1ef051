"""boto3's clients, where the environment does not say all that our own calls need: bounded in time, and quiet."""

from __future__ import annotations

import logging
import os
from typing import Any


def client(
    service: str,
    *,
    connect_seconds: float,
    read_seconds: float,
    attempts: int,
    region: str | None = None,
    **more: Any,  # noqa: ANN401 - as botocore's Config takes them
) -> Any:  # noqa: ANN401 - boto3 builds its clients at run time
    """Make one. It honours profiles, proxies and AWS_ENDPOINT_URL_* by itself.

    Args:
        service: as boto3 names it.
        connect_seconds: for a connection.
        read_seconds: for each answer.
        attempts: in all; 1 for what must not happen twice.
        region: another than that of the environment; AWS_REGION counts there too, as in our own clients.
        more: options of botocore's Config.

    """
    # At DEBUG botocore writes requests and answers into the log: what clients sent, and KMS's data keys in plaintext.
    log = logging.getLogger("botocore")
    log.setLevel(max(logging.WARNING, log.level))

    import boto3.session  # noqa: PLC0415 - 100 ms, and only where our own calls will not do
    from botocore.config import Config  # noqa: PLC0415

    retries: Any = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(connect_timeout=connect_seconds, read_timeout=read_seconds, retries=retries, **more)
    # Not boto3's default session: that would outlive this client, and with it credentials from before a snapshot.
    session: Any = boto3.session.Session()
    known = region or session.region_name or os.environ.get("AWS_REGION")
    return session.client(service, region_name=known, config=config)
