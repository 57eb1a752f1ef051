"""The environment variables that the harness sets for functions.

    settings, for_tokens, for_sign_in    the variables that template.yaml sets on AWS (MCP_…)
    CREDENTIALS, endpoints               what makes AWS clients call the harness, and never AWS

`applied` sets variables in this process for a block.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

Variables = dict[str, str | None]  # values by name; None: the variable is not set

ACCOUNT = "123456789012"
REGION = "us-east-1"
STACK = "local"
TABLE = f"{STACK}-table"
LOOPBACK = "127.0.0.1,localhost,::1"  # in the form of NO_PROXY
INSPECTOR_PORT = 6274  # the port of the MCP Inspector's page

# They belong to no account. AWS clients also read no file of the developer, so no call reaches AWS by mistake.
CREDENTIALS: Variables = {
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


def function_name(folder: str) -> str:
    """Return the name that the function of a folder has in AWS."""
    return f"{STACK}_{folder}"


def arn(name: str) -> str:
    """Return the ARN of a function by its name in AWS."""
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def settings(*, port: int, name: str, key_arn: str) -> Variables:
    """Return the variables that template.yaml sets for every function, with values for this machine.

    Clients use the port, and so does the harness's own page. `name` is that of the server.
    """
    return {
        "MCP_STACK": STACK,
        "MCP_STAGE": "local",
        "MCP_KMS_KEYS": key_arn,
        "MCP_TABLE": TABLE,
        "MCP_AUTH_MODE": "none",
        "MCP_SERVER_NAME": name,
        "MCP_SERVER_VERSION": "local",
        "MCP_TASK_LEASE_SECONDS": "3",  # until a silent worker is replaced; the default is 30
        "MCP_DIALECTS": os.environ.get("MCP_DIALECTS"),  # as the developer's shell has it
        "MCP_AWS_CLIENT": os.environ.get("MCP_AWS_CLIENT"),
        "MCP_ALLOWED_ORIGINS": ",".join(_origins(port)),
        "POWERTOOLS_SERVICE_NAME": STACK,
        "POWERTOOLS_METRICS_NAMESPACE": "mcp-functions",
        "POWERTOOLS_METRICS_DISABLED": "true",  # only CloudWatch reads metrics
    }


def _origins(port: int) -> list[str]:
    """Return whose web pages may call: the harness's page, the Inspector's page, and those that the shell names."""
    ports = (port, INSPECTOR_PORT)
    local_origins = [f"http://{name}:{number}" for number in ports for name in ("localhost", "127.0.0.1")]
    origins_of_shell = os.environ.get("MCP_ALLOWED_ORIGINS", "").split(",")
    return list(dict.fromkeys([*local_origins, *filter(None, origins_of_shell)]))  # each once


def for_tokens(*, issuer: str, resource: str) -> Variables:
    """Return the variables for AuthMode jwt: the URLs of the issuer, and of the endpoint as the audience of tokens."""
    return {
        "MCP_AUTH_MODE": "jwt",
        "MCP_JWT_ISSUER": issuer,
        "MCP_JWT_AUDIENCE": resource,
        "MCP_RESOURCE_URL": resource,
    }


def for_sign_in(*, url: str, client_id: str, scopes: Iterable[str]) -> Variables:
    """Return what AuthMode oauth needs beside `for_tokens`: URL, client id and scopes of functions/oauth."""
    return {
        "MCP_AUTH_MODE": "oauth",
        "MCP_OAUTH_URL": url,
        "MCP_OAUTH_CLIENT_ID": client_id,
        "MCP_OAUTH_RESOURCE_PARAMETER": "resource",
        "MCP_SCOPES_SUPPORTED": " ".join(scopes),
    }


def endpoints(*, kms: str, invoke: str, dynamodb: str | None = None, own: str | None = None) -> Variables:
    """Return the variables that send AWS clients to these URLs, without a proxy; None: the service does not run.

    S3, SQS and Secrets Manager share one, `own`.
    """
    without_proxy = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or LOOPBACK
    if LOOPBACK not in without_proxy:
        without_proxy = f"{without_proxy},{LOOPBACK}"
    return {
        "AWS_ENDPOINT_URL_DYNAMODB": dynamodb,
        "AWS_ENDPOINT_URL_KMS": kms,
        "AWS_ENDPOINT_URL_LAMBDA": invoke,
        "AWS_ENDPOINT_URL_S3": own,
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": own,
        "AWS_ENDPOINT_URL_SQS": own,
        "NO_PROXY": without_proxy,
        "no_proxy": without_proxy,
    }


@contextmanager
def applied(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Set variables until the end of the block, then restore the values before."""
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
