"""Signed calls without boto3: KMS GenerateDataKey and Decrypt, Lambda Invoke, and DynamoDB's of one item.

boto3 takes a quarter of a second of CPU to make its first call; these take what a signature and a connection take. They
look like boto3's clients to whoever calls them, errors included, and stand in for them only where Lambda's environment
says all that is needed (`surroundings`). Anywhere else, and with MCP_AWS_CLIENT=boto3, boto3 makes the calls.
"""

from __future__ import annotations

from mcp_functions.aws.surroundings import Target, find

__all__ = ["Target", "find", "prepare"]


def prepare(target: Target | None) -> None:
    """Import what calls of a target will need, and read whom to trust; no connection is made, no key is asked for."""
    if target:
        from mcp_functions.aws import clients  # noqa: F401, PLC0415 - only where calls will be made
        from mcp_functions.aws.connection import trusted  # noqa: PLC0415

        if target.tls:
            trusted()
