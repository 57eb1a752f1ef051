"""Signed calls of KMS, Lambda and DynamoDB without boto3.

boto3 needs a quarter of a second of CPU for its first call; these clients need one signature and one connection. They
have the methods and the errors of boto3's clients. They are used only where environment variables alone decide the
region, the endpoint and the credentials (endpoints.py). Otherwise, or with MCP_AWS_CLIENT=boto3, boto3 makes the calls.
"""

from __future__ import annotations

import os
from typing import Any

from mcp_functions.aws.endpoints import CallLimits, find_endpoint

__all__ = ["CallLimits", "find_endpoint", "make_client", "prepare"]


def make_client(service: str, limits: CallLimits) -> Any:  # noqa: ANN401 - boto3 builds its clients at run time
    """Make a client: one of `clients` if the environment is sufficient, otherwise boto3's.

    Args:
        service: the service, a key of `clients.CLIENTS`.
        limits: the limits of its calls.
    """
    endpoint = find_endpoint(os.environ, service)
    if endpoint is None:
        from mcp_functions.aws import by_boto3  # noqa: PLC0415 - boto3 takes 0.4 s to import

        return by_boto3.client(service, limits)
    from mcp_functions.aws.clients import CLIENTS  # noqa: PLC0415 - imported at init, where it is needed

    return CLIENTS[service](endpoint, limits)


def prepare(service: str) -> None:
    """Import what calls of a service need, and read the trusted certificates. No connection is opened.

    Lambda gives a full CPU while a function starts, so this costs less then than at the first call.
    """
    endpoint = find_endpoint(os.environ, service)
    if endpoint is None:
        import boto3.session  # noqa: F401, PLC0415 - boto3 takes 0.4 s to import

        return

    from mcp_functions.aws import clients  # noqa: F401, PLC0415 - only for functions that call AWS
    from mcp_functions.aws.connection import tls_context  # noqa: PLC0415

    if endpoint.scheme == "https":
        tls_context()  # it is cached, so the first call finds it ready
