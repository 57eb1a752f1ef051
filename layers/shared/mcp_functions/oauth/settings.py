"""The settings of the authorization server, read from the environment once, at the function's first event."""

# ruff: noqa: FBT003 - a default is the second column of the table

from __future__ import annotations

import json
import re
from copy import copy
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcp_functions.http import metadata
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.settings import NONE, Setting, Settings, read_all, read_words, switch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.oauth.json_types import ClientMetadata
    from mcp_functions.protocol.event_types import RequestContext

# The parameter in which a provider takes the resource that a token is for.
RESOURCE_PARAMETERS = ("", "resource", "audience")  # no parameter; RFC 8707 and Cognito; Auth0
PROMPTS = {"login", "select_account", "consent"}  # what a person may be asked at the provider
CLIENT_ID = r"[A-Za-z0-9._-]{1,64}"  # the id of a pre-registered client


def _read_resource_parameter(text: str) -> str:
    if text not in RESOURCE_PARAMETERS:
        raise ValueError("must be resource, audience or empty")
    return text


def _read_prompt(text: str) -> tuple[str, ...]:
    words = read_words(text)
    if not set(words) <= PROMPTS:
        raise ValueError("may have login, select_account and consent")
    return words


def _read_clients(text: str) -> dict[str, ClientMetadata]:
    """Read the pre-registered clients: a JSON array of metadata (RFC 7591), each with its `client_id`."""
    message = "must be a JSON array of objects, each with a client_id of its own and redirect_uris"
    try:
        clients = {client["client_id"]: client for client in json.loads(text or "[]")}
    except (ValueError, TypeError, KeyError):
        raise ValueError(message) from None  # the cause could quote the variable
    for client_id in clients:
        if not isinstance(client_id, str) or not re.fullmatch(CLIENT_ID, client_id):
            raise ValueError(message)
    return clients


class OAuthSettings:
    """The settings of the authorization server. Its attribute `common` has those that all functions share."""

    # fmt: off
    secret_arn = Setting("MCP_OAUTH_SECRET_ARN", "", str, "identity",
        "The ARN of the client secret in Secrets Manager. Empty: a public client.")
    resource_parameter = Setting("MCP_OAUTH_RESOURCE_PARAMETER", "", _read_resource_parameter, "identity",
        "The parameter in which the provider takes the resource that a token is for: `resource` or `audience`.")
    extra_scopes = Setting("MCP_OAUTH_EXTRA_SCOPES", NONE, read_words, "identity",
        "Further scopes to ask the provider for, as `offline_access`.")
    extra_prompt = Setting("MCP_OAUTH_EXTRA_PROMPT", NONE, _read_prompt, "identity",
        "Words of `prompt` that the provider always gets.")
    all_scopes = Setting("MCP_OAUTH_ALL_SCOPES", False, lambda text: text == "on", "identity",
        "Whether every sign-in is for all scopes, because the provider grants no part of them.")
    registration = Setting("MCP_OAUTH_REGISTRATION", True, switch, "identity",
        "Whether clients may register (RFC 7591).")
    documents = Setting("MCP_OAUTH_CLIENT_DOCUMENTS", True, switch, "identity",
        "Whether a client id may be the URL of a metadata document.")
    clients = Setting("MCP_OAUTH_CLIENTS", dict[str, "ClientMetadata"](), _read_clients, "identity",
        "The metadata of pre-registered clients, a JSON array.")
    blocked_clients = Setting("MCP_OAUTH_BLOCKED_CLIENTS", NONE, read_words, "identity",
        "Clients that are refused: digests from the log (`flow`), ids or hosts.")
    blocked_hosts = Setting("MCP_OAUTH_BLOCKED_HOSTS", NONE, lambda text: read_words(text.lower()), "identity",
        "Hosts to which no redirect URI may lead.")
    client_generation = Setting("MCP_OAUTH_CLIENT_GENERATION", "1", lambda text: text or "1", "identity",
        "An operator changes it to end all registrations.")
    # fmt: on

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the settings from the environment."""
        self.common = Settings(environ)
        if self.common.auth_mode != "oauth" or not self.common.kms_keys:
            raise Misconfigured(
                "the sign-in front needs MCP_AUTH_MODE oauth, and a key in MCP_KMS_KEYS to seal what browsers carry"
            )
        read_all(self, environ)

    @property
    def url(self) -> str:
        """The issuer that this server is, without a slash at its end."""
        return self.common.oauth_url

    @property
    def origin(self) -> str:
        """The origin of this server's pages."""
        url = urlsplit(self.url)
        return f"{url.scheme}://{url.netloc}"

    @property
    def resource(self) -> str:
        """The URL of the MCP endpoint that tokens are for."""
        return self.common.resource_url

    def for_domain(self, context: RequestContext) -> OAuthSettings:
        """Return the settings with the URLs of this server and of the MCP endpoint, from the domain of a request.

        A template cannot give a function the URL of the API that calls it, so a deployment may leave both empty.
        The gateway alone writes the event's `requestContext`, which is the argument.
        """
        if self.common.oauth_url and self.common.resource_url:
            return self
        settings = copy(self)
        settings.common = copy(self.common)
        settings.common.resource_url = metadata.resource_url(self.common, context)
        settings.common.oauth_url = metadata.front_url(self.common, context)
        return settings
