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

CLIENT_VARIABLE = "MCP_AWS_CLIENT"
# Configuration that only boto3 reads. A file that is /dev/null configures nothing.
BOTO3_VARIABLES = (
    "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_DATA_PATH",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_ACCOUNT_ID", "AWS_ACCOUNT_ID_ENDPOINT_MODE", "all_proxy", "ALL_PROXY",
)  # fmt: skip
TLS_VARIABLES = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "https_proxy", "HTTPS_PROXY")
PLAIN_VARIABLES = ("http_proxy", "HTTP_PROXY")
# Files that boto3 reads unless the variable names another: each may configure an endpoint.
BOTO3_FILES = (
    ("AWS_CONFIG_FILE", "~/.aws/config"),
    ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ("", "~/.aws/models"),  # read in any case
)
SERVICE_IDS = {"secretsmanager": "secrets_manager"}  # in the names of variables, where they differ
# A pattern is compiled when a cold start matches it, and not when it imports this module.
REGION = r"(cn|us|us-gov|eu|ap|sa|ca|me|af|il|mx)-[a-z]+-\d"
URL = r"(https?)://([A-Za-z0-9.-]+)(?::(\d+))?/?"
PORTS = {True: 443, False: 80}  # the usual port with and without TLS


class Credentials(NamedTuple):
    """An access key. Its `repr` shows no secret."""

    key_id: str
    secret: str
    token: str | None = None

    def __repr__(self) -> str:
        """Show the key's id without its secret."""
        return f"Credentials({self.key_id})"


class CallLimits(NamedTuple):
    """The limits of the calls of one client."""

    connect_seconds: float  # for each address of the host, and for the TLS handshake
    read_seconds: float  # for each response
    attempts: int  # 1 for calls that must not happen twice


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
    parts = re.fullmatch(URL, _url(environ, service, region))
    # With SnapStart there is no access key, and boto3 fetches keys that expire.
    key_id, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    if environ.get(CLIENT_VARIABLE, "lean") != "lean" or not (region and parts and key_id and secret):
        return None
    tls = parts[1] == "https"
    if _is_configured(environ, tls=tls):
        return None
    credentials = Credentials(key_id, secret, environ.get("AWS_SESSION_TOKEN") or None)
    return Endpoint(service, region, tls, parts[2], int(parts[3] or PORTS[tls]), credentials)


def _url(environ: Mapping[str, str], service: str, region: str) -> str:
    """Return the URL of a service; "" for a region of a partition that only boto3 knows."""
    name = SERVICE_IDS.get(service, service).upper()
    named = environ.get(f"AWS_ENDPOINT_URL_{name}") or environ.get("AWS_ENDPOINT_URL")
    known = re.fullmatch(REGION, region)
    if named or known is None:
        return named or ""
    domain = "amazonaws.com.cn" if known[1] == "cn" else "amazonaws.com"
    return f"https://{service}.{region}.{domain}"


def _is_configured(environ: Mapping[str, str], *, tls: bool) -> bool:
    variables = BOTO3_VARIABLES + (TLS_VARIABLES if tls else PLAIN_VARIABLES)
    if any(environ.get(name, "") not in {"", os.devnull} for name in variables):
        return True
    # A cold start does not import pathlib.
    return any(not environ.get(name) and os.path.exists(os.path.expanduser(path)) for name, path in BOTO3_FILES)  # noqa: PTH110, PTH111
