"""boto3's clients with time limits, for environments that only boto3 can read."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_functions.aws.endpoints import CallLimits


def client(service: str, limits: CallLimits, region: str | None = None, **options: Any) -> Any:  # noqa: ANN401 - boto3 builds its clients at run time
    """Build a client. It reads profiles, proxies and AWS_ENDPOINT_URL_* itself.

    Args:
        service: the name of the service in boto3.
        limits: the limits of its calls.
        region: the region; None reads it from the environment. Unlike boto3, this also reads AWS_REGION.
        options: further options of botocore's Config.
    """
    # At DEBUG botocore logs responses, and so KMS's plaintext data keys. Therefore it never logs below WARNING.
    log = logging.getLogger("botocore")
    log.setLevel(max(logging.WARNING, log.level))

    import boto3.session  # noqa: PLC0415 - slow to import, and most functions need no boto3
    from botocore.config import Config  # noqa: PLC0415

    retries: Any = {"mode": "standard", "total_max_attempts": limits.attempts}
    config = Config(
        connect_timeout=limits.connect_seconds, read_timeout=limits.read_seconds, retries=retries, **options
    )
    # boto3's default session would keep credentials from before a snapshot.
    session: Any = boto3.session.Session()
    region = region or session.region_name or os.environ.get("AWS_REGION")
    return session.client(service, region_name=region, config=config)
