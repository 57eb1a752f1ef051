"""The objects that the endpoints share: clients, browsers, the provider and others."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from mcp_functions.dispatch.seal_factory import SealFactory
from mcp_functions.http.events import folder_of
from mcp_functions.oauth.browsers import Browsers
from mcp_functions.oauth.caller_budgets import CallerBudgets
from mcp_functions.oauth.client_secret import ClientSecret
from mcp_functions.oauth.clients import Clients
from mcp_functions.oauth.documents import Documents
from mcp_functions.oauth.provider import Provider
from mcp_functions.oauth.provider_api import ProviderApi
from mcp_functions.oauth.sealed_values import SealedValues
from mcp_functions.oauth.settings import OAuthSettings
from mcp_functions.protocol.errors import FunctionStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.oauth.documents import Network
    from mcp_functions.protocol.event_types import RequestContext
    from mcp_functions.seal.kms import Wrapping


class Services:
    """The objects that the endpoints of one deployment share.

    Attributes:
        settings: what the operator has set.
        now: the clock, in unix seconds.
        values: seals what browsers and clients carry.
        clients: finds and registers clients.
        browsers: reads and writes cookies.
        provider: the OpenID Connect provider.
        refusal_budget: how many requests the provider may refuse for one caller.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        function_name: str,
        now: Callable[[], float],
        *,
        wrapping: Sequence[Wrapping] | None = None,
        network: Network | None = None,
    ) -> None:
        """Make the objects of one deployment; nothing is sent to KMS or to the provider.

        Args:
            environ: the environment, as `os.environ`.
            function_name: the physical name of the Lambda function.
            now: the clock, in unix seconds.
            wrapping: what encrypts data keys in place of the keys of MCP_KMS_KEYS.
            network: the network for fetches of clients' URLs, which tests replace.

        Raises:
            FunctionStopped: the operator stopped this server.
            Misconfigured: a variable is missing or invalid.
        """
        settings = OAuthSettings(environ)
        common = settings.common
        folder = folder_of(function_name, common)
        if common.stops(folder):
            raise FunctionStopped
        self.settings = settings
        self.now = now
        self.values = SealedValues(SealFactory(common, f"{common.stack}/{folder}", wrapping, now=now), now)
        self.clients = Clients(settings, self.values, Documents(now, network))
        self.browsers = Browsers(settings, self.values, now)
        secret = ClientSecret(settings.secret_arn, now)
        self.provider = Provider(settings, ProviderApi(common.jwt_issuer, common.oauth_client_id, secret, now), now)
        # All requests to the provider come from this one client of it. After many refusals it would throttle all users.
        self.refusal_budget = CallerBudgets(at_once=30, seconds_per_unit=2, reason="provider_budget", now=now)

    def for_domain(self, context: RequestContext) -> Services:
        """Return the services with the URLs of the domain that a request called; they share what is kept in memory."""
        services = copy(self)
        services.settings = self.settings.for_domain(context)
        services.browsers = Browsers(services.settings, self.values, self.now)
        services.provider = Provider(services.settings, self.provider.api, self.now)
        return services
