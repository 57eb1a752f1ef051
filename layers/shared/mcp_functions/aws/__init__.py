"""Signed calls of KMS, Lambda and DynamoDB without boto3.

boto3 needs a quarter of a second of CPU for its first call; these clients need one signature and one connection. They
have the methods and the errors of boto3's clients. They are used only where environment variables alone decide the
region, the endpoint and the credentials (endpoints.py). Otherwise, or with MCP_AWS_CLIENT=boto3, boto3 makes the calls.
Its import takes 0.4 s.
"""

# ruff: noqa: ANN401 - boto3 builds its clients at run time

from __future__ import annotations

import logging
import os
from typing import Any

from mcp_functions.aws.endpoints import CallLimits, find_endpoint

__all__ = ["CallLimits", "boto3_client", "find_endpoint", "make_client", "prepare"]


def make_client(service: str, limits: CallLimits) -> Any:
    """Make a client: one of `clients.CLIENTS` if the environment is sufficient, otherwise boto3's."""
    endpoint = find_endpoint(os.environ, service)
    if endpoint is None:
        return boto3_client(service, limits)
    from mcp_functions.aws.clients import CLIENTS

    return CLIENTS[service](endpoint, limits)


def boto3_client(service: str, limits: CallLimits, region: str | None = None, **options: Any) -> Any:
    """Make a client of boto3, which reads profiles, proxies and AWS_ENDPOINT_URL_* itself.

    Without `region`, AWS_REGION counts too, unlike for boto3. `options` are further ones of botocore's Config.
    """
    import boto3.session
    from botocore.config import Config

    # At DEBUG botocore logs responses, and so KMS's plaintext data keys. Therefore it never logs below WARNING.
    log = logging.getLogger("botocore")
    log.setLevel(max(logging.WARNING, log.level))
    retries: Any = {"mode": "standard", "total_max_attempts": limits.attempts}
    config = Config(
        connect_timeout=limits.connect_seconds, read_timeout=limits.read_seconds, retries=retries, **options
    )
    # boto3's default session would keep credentials from before a snapshot.
    session: Any = boto3.session.Session()
    region = region or session.region_name or os.environ.get("AWS_REGION")
    return session.client(service, region_name=region, config=config)


def prepare(service: str) -> None:
    """Import what calls of a service need, and read the trusted certificates. No connection is opened.

    Lambda gives a full CPU while a function starts, so this costs less then than at the first call.
    """
    endpoint = find_endpoint(os.environ, service)
    if endpoint is None:
        import boto3.session  # noqa: F401

        return

    from mcp_functions.aws import clients  # noqa: F401
    from mcp_functions.aws.connection import tls_context

    if endpoint.scheme == "https":
        tls_context()  # it is cached, so the first call finds it ready
