"""The endpoint and the credentials of a service, read from the environment, if the environment alone decides them.

If any other configuration could change what boto3 does, boto3 makes the calls: profiles, files, proxies, certificate
authorities, FIPS or dual-stack endpoints, unknown partitions. So both clients call the same endpoint.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.aws.signing import Credentials

CLIENT_VARIABLE = "MCP_AWS_CLIENT"
# Configuration that only boto3 reads. A file that is /dev/null configures nothing.
BOTO3_VARIABLES = (
    "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_DATA_PATH",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT",
)  # fmt: skip
# Files that boto3 reads unless the variable names another: each may configure an endpoint.
BOTO3_FILES = (
    ("AWS_CONFIG_FILE", "~/.aws/config"),
    ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ("", "~/.aws/models"),  # read in any case
)
DYNAMODB_VARIABLES = ("AWS_ACCOUNT_ID", "AWS_ACCOUNT_ID_ENDPOINT_MODE")  # boto3 then uses an account's endpoint
TLS_VARIABLES = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")
# A pattern is compiled when a cold start matches it, and not when it imports this module.
DOMAINS = (  # the domain of the endpoints in each partition of regions
    (r"cn-[a-z]+-\d", "amazonaws.com.cn"),
    (r"us-gov-[a-z]+-\d", "amazonaws.com"),
    (r"(?:us|eu|ap|sa|ca|me|af|il|mx)-[a-z]+-\d", "amazonaws.com"),
)
URL = r"(https?)://([A-Za-z0-9.-]+)(?::(\d+))?/?"
PORTS = {True: 443, False: 80}  # the usual port with and without TLS


class Endpoint(NamedTuple):
    """The endpoint of one service, and the credentials to call it with."""

    service: str
    region: str
    tls: bool
    host: str
    port: int
    credentials: Credentials

    @property
    def authority(self) -> str:
        """The `host` header: without the port if that is the scheme's own."""
        return self.host if self.port == PORTS[self.tls] else f"{self.host}:{self.port}"


def find_endpoint(environ: Mapping[str, str], service: str) -> Endpoint | None:
    """Read the endpoint of a service from the environment. None: boto3 has to make the call."""
    region = environ.get("AWS_DEFAULT_REGION") or environ.get("AWS_REGION") or ""
    address = _address(environ, service, region)
    if environ.get(CLIENT_VARIABLE, "lean") != "lean" or not region or address is None:
        return None
    tls, host, port = address
    if _is_configured(environ, service, tls=tls) or _uses_proxy(environ, host, tls=tls):
        return None
    credentials = _credentials(environ)
    return Endpoint(service, region, tls, host, port, credentials) if credentials else None


def _address(environ: Mapping[str, str], service: str, region: str) -> tuple[bool, str, int] | None:
    url = environ.get(f"AWS_ENDPOINT_URL_{service.upper()}") or environ.get("AWS_ENDPOINT_URL")
    if url:
        parts = re.fullmatch(URL, url)
        if parts is None:
            return None
        tls = parts[1] == "https"
        return tls, parts[2], int(parts[3] or PORTS[tls])
    for regions, domain in DOMAINS:
        if re.fullmatch(regions, region):
            return True, f"{service}.{region}.{domain}", PORTS[True]
    return None


def _is_configured(environ: Mapping[str, str], service: str, *, tls: bool) -> bool:
    variables = list(BOTO3_VARIABLES)
    if tls:
        variables += TLS_VARIABLES
    if service == "dynamodb":
        variables += DYNAMODB_VARIABLES
    if any(environ.get(name, "") not in {"", os.devnull} for name in variables):
        return True
    # A cold start does not import pathlib.
    return any(not environ.get(name) and os.path.exists(os.path.expanduser(path)) for name, path in BOTO3_FILES)  # noqa: PTH110, PTH111


def _uses_proxy(environ: Mapping[str, str], host: str, *, tls: bool) -> bool:
    names = ("https_proxy" if tls else "http_proxy", "all_proxy")
    has_proxy = any(environ.get(name) or environ.get(name.upper()) for name in names)
    excluded = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").split(",")
    return has_proxy and host not in map(str.strip, excluded)


def _credentials(environ: Mapping[str, str]) -> Credentials | None:
    """Read the access key of the environment. With SnapStart there is none, and boto3 fetches keys that expire."""
    from mcp_functions.aws.signing import Credentials  # noqa: PLC0415 - the endpoint's lists sign nothing

    key_id = environ.get("AWS_ACCESS_KEY_ID")
    secret = environ.get("AWS_SECRET_ACCESS_KEY")
    if not key_id or not secret:
        return None
    return Credentials(key_id, secret, environ.get("AWS_SESSION_TOKEN") or None)
