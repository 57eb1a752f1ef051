"""The routes of the sign-in front, and the services that its endpoints share.

    GET   /authorize      check a client's request, show the consent page or redirect to the provider
    POST  /authorize      read the form of the consent page, and redirect to the provider
    GET   /callback       read the provider's answer, and redirect to the client
    POST  /token          give a client its tokens
    POST  /revoke         revoke a refresh token
    POST  /register       register a client
    GET   /.well-known/…  return the metadata (discovery.py)

The front is an OAuth authorization server in front of an OpenID Connect provider. It registers MCP clients, which few
providers do, asks the user for consent, and sends the user to the provider to sign in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from mcp_functions import observability
from mcp_functions.dispatch.seal_factory import SealFactory
from mcp_functions.oauth import answers, authorization, callback, discovery, registration, token
from mcp_functions.oauth.browsers import Browsers
from mcp_functions.oauth.caller_budgets import FETCHES, REFUSALS, CallerBudgets
from mcp_functions.oauth.client_secret import ClientSecret
from mcp_functions.oauth.clients import Clients
from mcp_functions.oauth.provider import Provider
from mcp_functions.oauth.provider_api import ProviderApi
from mcp_functions.oauth.request import read as read_request
from mcp_functions.oauth.safe_fetch import SafeFetch
from mcp_functions.oauth.sealed_values import SealedValues
from mcp_functions.oauth.settings import read as read_settings
from mcp_functions.protocol.errors import FunctionStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.safe_fetch import Network
    from mcp_functions.oauth.settings import FrontSettings
    from mcp_functions.seal.data_keys import Wrapping

REGISTER = "/register"  # its body is JSON; the other endpoints read a query or a form
ENDPOINTS: dict[str, dict[str, Callable[[OAuthRequest, Services], Response]]] = {
    "/authorize": {"GET": authorization.begin, "POST": authorization.decide},
    "/callback": {"GET": callback.receive},
    "/token": {"POST": token.issue},
    "/revoke": {"POST": token.revoke},
}


class Services(NamedTuple):
    """The services that the endpoints of one deployment share."""

    settings: FrontSettings
    values: SealedValues  # seals what browsers and clients carry
    clients: Clients  # finds and registers clients
    browsers: Browsers  # reads and writes cookies
    provider: Provider  # the OpenID Connect provider
    refusals: CallerBudgets  # limits how often one caller makes the provider refuse
    now: Callable[[], float]  # the clock, in unix seconds

    def at(self, context: Mapping[str, Any]) -> Services:
        """Return the services for the domain that a request called; they share what is kept in memory."""
        settings = self.settings.at(context)
        return self._replace(
            settings=settings,
            browsers=Browsers(settings, self.values),
            provider=Provider(settings, self.provider.api, self.now),
        )


def answer(event: Mapping[str, Any], http: HttpRequest, services: Services) -> Response:
    """Answer one request.

    Args:
        event: the event of API Gateway.
        http: the same request, read from the event.
        services: the services of the deployment.

    Raises:
        OAuthError: the request is refused.
        McpError: KMS or the provider does not answer.
    """
    notes = observability.current()
    services = services.at(http.context)
    document = discovery.documents(services.settings).get(http.path)
    path = _path_in_front(http.path, services.settings)
    methods = ["GET"] if document is not None else _methods(path, services.settings)
    if not methods:
        notes.reason = "not_found"
        return answers.empty(404)
    notes.method = "metadata" if document is not None else path.removeprefix("/")
    if http.method == "OPTIONS" and path not in answers.PAGES:
        return answers.empty(204, answers.PREFLIGHT)
    if http.method not in methods:
        notes.reason = "http_method"
        return answers.empty(405, {"allow": ", ".join(methods)})
    if document is not None:
        return answers.document(document)
    if path == REGISTER:
        return registration.register(http, services)
    return ENDPOINTS[path][http.method](read_request(event, http), services)


def _path_in_front(path: str, settings: FrontSettings) -> str:
    """Return the path of a request within the front, whose URL may have a path of its own."""
    base = urlsplit(settings.url).path
    if path.startswith(f"{base}/"):
        return path.removeprefix(base)
    return path


def _methods(path: str, settings: FrontSettings) -> list[str]:
    """Return the methods of an endpoint; none if there is no such endpoint."""
    if path == REGISTER and settings.registration:
        return ["POST"]
    return list(ENDPOINTS.get(path, {}))


def make_services(
    environ: Mapping[str, str],
    function_name: str,
    wrapping: Sequence[Wrapping] | None,
    network: Network | None,
    now: Callable[[], float],
) -> Services:
    """Make the services of one deployment.

    Args:
        environ: the environment, as `os.environ`.
        function_name: the physical name of the Lambda function.
        wrapping: another KMS than the keys of the environment.
        network: the network for fetches of clients' URLs.
        now: the clock, unix seconds.

    Raises:
        FunctionStopped: the operator stopped the front.
        Misconfigured: a variable is missing or invalid.
    """
    settings = read_settings(environ)
    common = settings.common
    folder = common.folder(function_name)
    if folder in common.stopped_functions:
        raise FunctionStopped
    values = SealedValues(SealFactory(common, f"{common.stack}/{folder}", wrapping, now=now), now)
    secret = ClientSecret(settings.secret_arn, now)
    api = ProviderApi(common.jwt_issuer, common.oauth_client_id, secret, now)
    documents = SafeFetch(now, CallerBudgets(FETCHES, now), network)
    return Services(
        settings=settings,
        values=values,
        clients=Clients(settings, values, documents),
        browsers=Browsers(settings, values),
        provider=Provider(settings, api, now),
        refusals=CallerBudgets(REFUSALS, now),
        now=now,
    )
