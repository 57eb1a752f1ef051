"""The environment that template.yaml gives a function on AWS, and what points boto3 at the harness instead."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ACCOUNT = "123456789012"
REGION = "us-east-1"
STACK = "local"
TABLE = f"{STACK}-table"
LOOPBACK = "127.0.0.1,localhost,::1"

# No account of the developer's may be reached by mistake: these credentials are nobody's, and no file of theirs counts.
CREDENTIALS: dict[str, str | None] = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_SESSION_TOKEN": None,
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_PROFILE": None,
    "AWS_DEFAULT_PROFILE": None,
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": None,
}


def arn(name: str) -> str:
    """Return the ARN of a function."""
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def settings(*, port: int, name: str, key_arn: str) -> dict[str, str | None]:
    """Write what the template sets, for one stack on this machine.

    Args:
        port: that clients connect to; pages served from it may call, no others.
        name: what the server calls itself.
        key_arn: the key that seals.

    """
    return {
        "MCP_STACK": STACK,
        "MCP_STAGE": "local",
        "MCP_KMS_KEYS": key_arn,
        "MCP_TABLE": TABLE,
        "MCP_AUTH_MODE": "none",
        "MCP_SERVER_NAME": name,
        "MCP_SERVER_VERSION": "local",
        "MCP_TASK_LEASE_SECONDS": "3",  # who kills a worker at a desk will not wait for half a minute
        "MCP_DIALECTS": os.environ.get("MCP_DIALECTS"),  # as the developer's shell has it
        "MCP_AWS_CLIENT": os.environ.get("MCP_AWS_CLIENT"),  # as the developer's shell has it, too
        "MCP_ALLOWED_ORIGINS": f"http://localhost:{port},http://127.0.0.1:{port}",
        "POWERTOOLS_SERVICE_NAME": STACK,
        "POWERTOOLS_METRICS_NAMESPACE": "mcp-functions",
        "POWERTOOLS_METRICS_DISABLED": "true",  # CloudWatch alone reads them
    }


def for_tokens(*, issuer: str, resource: str) -> dict[str, str | None]:
    """Write what the template sets for AuthMode jwt.

    Args:
        issuer: of the tokens.
        resource: URL that clients connect to; tokens are for it.

    """
    return {
        "MCP_AUTH_MODE": "jwt",
        "MCP_JWT_ISSUER": issuer,
        "MCP_JWT_AUDIENCE": resource,
        "MCP_RESOURCE_URL": resource,
    }


def endpoints(*, kms: str, invoke: str, dynamodb: str | None = None, s3: str | None = None) -> dict[str, str | None]:
    """Point boto3's clients at the harness, past any proxy.

    Args:
        kms: URL of the KMS endpoint.
        invoke: URL of the Lambda endpoint.
        dynamodb: URL of the DynamoDB endpoint, if there is one.
        s3: URL of the S3 endpoint, if there is one.

    """
    around = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    without_proxy = f"{around},{LOOPBACK}" if around and LOOPBACK not in around else around or LOOPBACK
    return {
        "AWS_ENDPOINT_URL_DYNAMODB": dynamodb,
        "AWS_ENDPOINT_URL_KMS": kms,
        "AWS_ENDPOINT_URL_LAMBDA": invoke,
        "AWS_ENDPOINT_URL_S3": s3,
        "NO_PROXY": without_proxy,
        "no_proxy": without_proxy,
    }


@contextmanager
def applied(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables (None: unset) until the end of the block, then put back what was there."""
    before = {name: os.environ.get(name) for name in variables}
    _set(variables)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
