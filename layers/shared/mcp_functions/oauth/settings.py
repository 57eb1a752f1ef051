"""The settings of the authorization server, read from the environment once, at the function's first event."""

from __future__ import annotations

import json
import re
from copy import copy
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mcp_functions.http import metadata
from mcp_functions.protocol.errors import Misconfigured
from mcp_functions.settings import Settings, read_switch, read_words

if TYPE_CHECKING:
    from collections.abc import Mapping

# The parameter in which a provider takes the resource that a token is for.
RESOURCE_PARAMETERS = ("", "resource", "audience")  # no parameter; RFC 8707 and Cognito; Auth0
PROMPTS = {"login", "select_account", "consent"}  # what a person may be asked at the provider
CLIENT_ID = r"[A-Za-z0-9._-]{1,64}"  # the id of a pre-registered client


class OAuthSettings:
    """The settings of the authorization server.

    Attributes:
        common: the settings that all functions of the deployment share.
        secret_arn: the ARN of the client secret in Secrets Manager; "" for a public client.
        resource_parameter: one of RESOURCE_PARAMETERS.
        extra_scopes: further scopes to ask the provider for, for example `offline_access`.
        extra_prompt: words of `prompt` that the provider always gets.
        all_scopes: whether every sign-in is for all scopes, because the provider grants no part of them.
        registration: whether clients may register (RFC 7591).
        documents: whether a client id may be the URL of a metadata document.
        clients: the metadata of pre-registered clients, by client id.
        blocked_clients: digests from the log (`flow`), ids or hosts of clients.
        blocked_hosts: no redirect URI may lead to these hosts.
        client_generation: an operator changes it to end all registrations.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the settings from the environment.

        Raises:
            Misconfigured: a variable is missing or invalid.
        """
        self.common = Settings(environ)
        if self.common.auth_mode != "oauth" or not self.common.kms_keys:
            message = (
                "the sign-in front needs MCP_AUTH_MODE oauth, and a key in MCP_KMS_KEYS to seal what browsers carry"
            )
            raise Misconfigured(message)
        self.secret_arn = environ.get("MCP_OAUTH_SECRET_ARN", "")
        self.resource_parameter = environ.get("MCP_OAUTH_RESOURCE_PARAMETER", "")
        if self.resource_parameter not in RESOURCE_PARAMETERS:
            raise Misconfigured(reason="MCP_OAUTH_RESOURCE_PARAMETER must be resource, audience or empty")
        self.extra_scopes = read_words(environ, "MCP_OAUTH_EXTRA_SCOPES")
        self.extra_prompt = read_words(environ, "MCP_OAUTH_EXTRA_PROMPT")
        if not set(self.extra_prompt) <= PROMPTS:
            raise Misconfigured(reason="MCP_OAUTH_EXTRA_PROMPT may have login, select_account and consent")
        self.all_scopes = environ.get("MCP_OAUTH_ALL_SCOPES", "off") == "on"
        self.registration = read_switch(environ, "MCP_OAUTH_REGISTRATION")
        self.documents = read_switch(environ, "MCP_OAUTH_CLIENT_DOCUMENTS")
        self.clients = _read_clients(environ.get("MCP_OAUTH_CLIENTS") or "[]")
        self.blocked_clients = frozenset(read_words(environ, "MCP_OAUTH_BLOCKED_CLIENTS"))
        self.blocked_hosts = frozenset(host.lower() for host in read_words(environ, "MCP_OAUTH_BLOCKED_HOSTS"))
        self.client_generation = environ.get("MCP_OAUTH_CLIENT_GENERATION") or "1"

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

    def for_domain(self, context: Mapping[str, Any]) -> OAuthSettings:
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


def _read_clients(text: str) -> dict[str, dict[str, Any]]:
    """Read the pre-registered clients: a JSON array of metadata (RFC 7591), each with its `client_id`."""
    message = "MCP_OAUTH_CLIENTS must be a JSON array of objects, each with a client_id of its own and redirect_uris"
    try:
        clients = {client["client_id"]: client for client in json.loads(text)}
    except (ValueError, TypeError, KeyError):
        raise Misconfigured(message) from None  # the cause could quote the variable
    for client_id in clients:
        if not isinstance(client_id, str) or not re.fullmatch(CLIENT_ID, client_id):
            raise Misconfigured(message)
    return clients
