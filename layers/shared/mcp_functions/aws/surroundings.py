"""What the environment says about calls of AWS: where to, and who signs; or that this is boto3's to find out.

Only what is said in full is believed: the region, the credentials, an endpoint without surprises. A profile, a file of
configuration, a proxy, a certificate authority of one's own, FIPS or dual-stack endpoints, or a partition that is not
known here: boto3's. So both roads lead to the same endpoint.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.aws.signing import Credentials

SWITCH = "MCP_AWS_CLIENT"
# Whoever sets one of these expects boto3 to know what it means; a file that is /dev/null means nothing.
ANOTHER = (
    "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_DATA_PATH",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT",
)  # fmt: skip
# What boto3 reads where no variable names another file: each of them may hold an endpoint, or rules for endpoints.
FILES = (
    ("AWS_CONFIG_FILE", "~/.aws/config"),
    ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
    ("", "~/.aws/models"),  # read in any case
)
# By these boto3 chooses an endpoint of the account's own, in DynamoDB alone.
ACCOUNT = ("AWS_ACCOUNT_ID", "AWS_ACCOUNT_ID_ENDPOINT_MODE")
TRUST = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")  # and one of these, where the connection is encrypted
PARTITIONS = (  # of a region: where its endpoints are
    (r"cn-[a-z]+-\d", "amazonaws.com.cn"),
    (r"us-gov-[a-z]+-\d", "amazonaws.com"),
    (r"(?:us|eu|ap|sa|ca|me|af|il|mx)-[a-z]+-\d", "amazonaws.com"),
)
URL = r"(https?)://([A-Za-z0-9.-]+)(?::(\d+))?/?"
OURS = r"http://((?:127\.0\.0\.1|localhost|169\.254\.170\.2)(?::\d+)?)(/[!-~]*)"  # of credentials


class Target(NamedTuple):
    """One service, as this environment reaches it."""

    service: str
    region: str
    tls: bool
    host: str
    port: int
    credentials: Callable[[], Credentials]

    @property
    def name(self) -> str:
        """The `host` header."""
        return self.host if self.port == (443 if self.tls else 80) else f"{self.host}:{self.port}"


def find(environ: Mapping[str, str], service: str) -> Target | None:
    """Find out how to call a service; None: boto3 knows.

    Args:
        environ: the environment, as `os.environ`.
        service: "dynamodb", "kms" or "lambda".

    """
    region = environ.get("AWS_DEFAULT_REGION") or environ.get("AWS_REGION") or ""
    where = _endpoint(environ, service, region)
    if environ.get(SWITCH, "lean") != "lean" or not (region and where):
        return None
    tls, host, port = where
    others = (*ANOTHER, *(TRUST if tls else ()), *(ACCOUNT if service == "dynamodb" else ()))
    another = any(environ.get(name, "") not in {"", os.devnull} for name in others)
    if another or _has_files(environ) or _proxied(environ, host, tls=tls) or not (credentials := _credentials(environ)):
        return None
    return Target(service, region, tls, host, port, credentials)


def _endpoint(environ: Mapping[str, str], service: str, region: str) -> tuple[bool, str, int] | None:
    url = environ.get(f"AWS_ENDPOINT_URL_{service.upper()}") or environ.get("AWS_ENDPOINT_URL")
    if url:
        found = re.fullmatch(URL, url)
        return (found[1] == "https", found[2], int(found[3] or (443 if found[1] == "https" else 80))) if found else None
    suffix = next((suffix for regions, suffix in PARTITIONS if re.fullmatch(regions, region)), None)
    return (True, f"{service}.{region}.{suffix}", 443) if suffix else None


def _has_files(environ: Mapping[str, str]) -> bool:
    # A cold start has no pathlib.
    return any(not environ.get(name) and os.path.exists(os.path.expanduser(path)) for name, path in FILES)  # noqa: PTH110, PTH111


def _proxied(environ: Mapping[str, str], host: str, *, tls: bool) -> bool:
    names = ("https_proxy", "all_proxy") if tls else ("http_proxy", "all_proxy")
    proxies = any(environ.get(name) or environ.get(name.upper()) for name in names)
    around = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").split(",")
    return proxies and host not in map(str.strip, around)


def _credentials(environ: Mapping[str, str]) -> Callable[[], Credentials] | None:
    from mcp_functions.aws import credentials  # noqa: PLC0415 - the front door's lists sign nothing

    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        return credentials.given(environ)
    found = re.fullmatch(OURS, environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", ""))
    if found is None or environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") or _assumes(environ):
        return None
    return credentials.Fetched(found[1], found[2], environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", ""))


def _assumes(environ: Mapping[str, str]) -> bool:
    names = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    return any(environ.get(name) for name in names)
