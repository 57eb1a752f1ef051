"""The objects that the endpoints share: clients, browsers, the provider and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from mcp_functions.oauth.settings import read as read_settings
from mcp_functions.protocol.errors import FunctionStopped
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.oauth.documents import Network
    from mcp_functions.oauth.settings import OAuthSettings
    from mcp_functions.seal.kms import Wrapping


class Services(NamedTuple):
    """The objects that the endpoints of one deployment share."""

    settings: OAuthSettings
    values: SealedValues  # seals what browsers and clients carry
    clients: Clients  # finds and registers clients
    browsers: Browsers  # reads and writes cookies
    provider: Provider  # the OpenID Connect provider
    refusal_budget: CallerBudgets  # how many requests the provider may refuse for one caller
    now: Callable[[], float]  # the clock, in unix seconds

    def for_domain(self, context: Mapping[str, Any]) -> Services:
        """Return the services with the URLs of the domain that a request called; they share what is kept in memory."""
        settings = self.settings.for_domain(context)
        browsers = Browsers(settings, self.values)
        provider = Provider(settings, self.provider.api, self.now)
        return self._replace(settings=settings, browsers=browsers, provider=provider)


def make_services(
    environ: Mapping[str, str],
    function_name: str,
    now: Callable[[], float],
    *,
    wrapping: Sequence[Wrapping] | None = None,
    network: Network | None = None,
) -> Services:
    """Make the services of one deployment.

    Args:
        environ: the environment, as `os.environ`.
        function_name: the physical name of the Lambda function.
        now: the clock, unix seconds.
        wrapping: what encrypts data keys in place of the keys of MCP_KMS_KEYS.
        network: the network for fetches of clients' URLs, which tests replace.

    Raises:
        FunctionStopped: the operator stopped this server.
        Misconfigured: a variable is missing or invalid.
    """
    settings = read_settings(environ)
    common = settings.common
    folder = folder_of(function_name, common)
    if folder in common.stopped_functions:
        raise FunctionStopped
    seals = SealFactory(common, f"{common.stack}/{folder}", wrapping, now=now)
    values = SealedValues(seals, now)
    secret = ClientSecret(settings.secret_arn, now)
    api = ProviderApi(common.jwt_issuer, common.oauth_client_id, secret, now)
    fetch_budget = CallerBudgets(at_once=10, seconds_per_unit=6, reason="fetch_budget", now=now)
    documents = Documents(now, fetch_budget, network)
    return Services(
        settings=settings,
        values=values,
        clients=Clients(settings, values, documents),
        browsers=Browsers(settings, values),
        provider=Provider(settings, api, now),
        # All requests to the provider come from this one client of it. After many refusals it would throttle all users.
        refusal_budget=CallerBudgets(at_once=30, seconds_per_unit=2, reason="provider_budget", now=now),
        now=now,
    )
