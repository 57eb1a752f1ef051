"""Signed calls of KMS, Lambda and DynamoDB without boto3.

boto3 needs a quarter of a second of CPU for its first call; these clients need one signature and one connection. They
have the methods and the errors of boto3's clients. They are used only where the environment names the region, the
endpoint and the credentials (`endpoints`). Elsewhere, and with MCP_AWS_CLIENT=boto3, boto3 makes the calls.
"""

from __future__ import annotations

from mcp_functions.aws.endpoints import Endpoint, find_endpoint

__all__ = ["Endpoint", "find_endpoint", "prepare"]


def prepare(endpoint: Endpoint | None) -> None:
    """Import what calls of an endpoint need, and read the trusted certificates. No connection is opened."""
    if endpoint is None:
        return
    from mcp_functions.aws import clients  # noqa: F401, PLC0415 - only for functions that call AWS
    from mcp_functions.aws.connection import tls_context  # noqa: PLC0415

    if endpoint.tls:
        tls_context()
