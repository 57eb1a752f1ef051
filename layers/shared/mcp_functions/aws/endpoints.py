"""The endpoint and the credentials of an AWS service, read from environment variables.

boto3 also reads other configuration: profiles, files, proxies, certificate authorities, FIPS or dual-stack endpoints,
unknown partitions. If there is any of it, `find_endpoint` returns None, and boto3 makes the calls. So our clients call
the endpoint that boto3 would call.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

CLIENT_VARIABLE = "MCP_AWS_CLIENT"  # "lean", the default, allows our clients; "boto3" does not
BOTO3_VARIABLES = (  # only boto3 understands these
    "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_DATA_PATH",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_ACCOUNT_ID", "AWS_ACCOUNT_ID_ENDPOINT_MODE", "all_proxy", "ALL_PROXY",
)  # fmt: skip
TLS_VARIABLES = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "https_proxy", "HTTPS_PROXY")
PLAIN_VARIABLES = ("http_proxy", "HTTP_PROXY")
# The files that boto3 reads -> the variable that names another file in its place.
BOTO3_FILES = {"~/.aws/config": "AWS_CONFIG_FILE", "~/.aws/credentials": "AWS_SHARED_CREDENTIALS_FILE"}
SERVICE_IDS = {"secretsmanager": "secrets_manager"}  # the names in AWS_ENDPOINT_URL_…
# REGION and URL are texts, not compiled patterns: a cold start compiles a pattern only if it needs that pattern.
REGION = r"(?P<area>cn|us|us-gov|eu|ap|sa|ca|me|af|il|mx)-[a-z]+-\d"
URL = r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+)(?::(?P<port>\d+))?/?"
PORTS = {"https": 443, "http": 80}  # scheme -> its port, which a URL may leave out


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
    read_seconds: float  # for each request and its response
    attempts: int  # how often a call is tried; 1 for calls that must not happen twice


class Endpoint(NamedTuple):
    """The endpoint of one service, and the credentials to call it with."""

    service: str  # the service's name in signatures, for example "kms"
    region: str
    scheme: str  # "https" or "http"
    host: str
    port: int
    credentials: Credentials

    @property
    def authority(self) -> str:
        """The `host` header: without the port if that is the scheme's own."""
        return self.host if self.port == PORTS[self.scheme] else f"{self.host}:{self.port}"


def find_endpoint(environ: Mapping[str, str], service: str) -> Endpoint | None:
    """Read the endpoint of a service from the environment; None if boto3 has to make the calls."""
    if environ.get(CLIENT_VARIABLE, "lean") != "lean":
        return None
    # boto3 reads AWS_DEFAULT_REGION, and not AWS_REGION. Lambda sets both.
    region = environ.get("AWS_DEFAULT_REGION") or environ.get("AWS_REGION")
    # With SnapStart, Lambda sets no access key: boto3 has to fetch keys, which expire.
    key_id = environ.get("AWS_ACCESS_KEY_ID")
    secret = environ.get("AWS_SECRET_ACCESS_KEY")
    if not region or not key_id or not secret:
        return None
    url = re.fullmatch(URL, _read_url(environ, service, region))
    if url is None or _needs_boto3(environ, url["scheme"]):
        return None
    credentials = Credentials(key_id, secret, environ.get("AWS_SESSION_TOKEN") or None)
    port = int(url["port"] or PORTS[url["scheme"]])
    return Endpoint(service, region, url["scheme"], url["host"], port, credentials)


def _read_url(environ: Mapping[str, str], service: str, region: str) -> str:
    """Return the URL of a service; "" for a region of a partition that only boto3 knows."""
    name = SERVICE_IDS.get(service, service).upper()
    url = environ.get(f"AWS_ENDPOINT_URL_{name}") or environ.get("AWS_ENDPOINT_URL")
    if url:
        return url
    known = re.fullmatch(REGION, region)
    if known is None:
        return ""
    domain = "amazonaws.com.cn" if known["area"] == "cn" else "amazonaws.com"
    return f"https://{service}.{region}.{domain}"


def _needs_boto3(environ: Mapping[str, str], scheme: str) -> bool:
    """Return whether a variable or a file configures what only boto3 understands."""
    scheme_variables = TLS_VARIABLES if scheme == "https" else PLAIN_VARIABLES
    for name in BOTO3_VARIABLES + scheme_variables:
        if environ.get(name, "") not in {"", os.devnull}:  # an empty file configures nothing
            return True
    for path, variable in BOTO3_FILES.items():
        is_replaced = environ.get(variable)  # by os.devnull: any other value has returned above
        # A cold start does not import pathlib, so this is os.path.
        if not is_replaced and os.path.exists(os.path.expanduser(path)):  # noqa: PTH110, PTH111
            return True
    return False
