"""The routes of the sign-in front, and the services that its endpoints share.

    GET   /authorize      check a client's request, show the consent page or redirect to the provider
    POST  /authorize      read the form of the consent page, and redirect to the provider
    GET   /callback       read the provider's answer, and redirect to the client
    POST  /token          give a client its tokens
    POST  /revoke         revoke a refresh token
    POST  /register       register a client
    GET   /.well-known/…  return the metadata (discovery.py)

The front is an OAuth authorization server for MCP clients. It registers the clients, which few OpenID Connect providers
do, asks the user for consent, and sends the user to the provider of the deployment to sign in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from mcp_functions import observability
from mcp_functions.dispatch.seal_factory import SealFactory
from mcp_functions.http.events import folder_of
from mcp_functions.oauth import answers, authorization, callback, discovery, registration, token
from mcp_functions.oauth.browsers import Browsers
from mcp_functions.oauth.caller_budgets import CallerBudgets
from mcp_functions.oauth.client_secret import ClientSecret
from mcp_functions.oauth.clients import Clients
from mcp_functions.oauth.document_cache import DocumentCache
from mcp_functions.oauth.provider import Provider
from mcp_functions.oauth.provider_api import ProviderApi
from mcp_functions.oauth.request import read as read_request
from mcp_functions.oauth.sealed_values import SealedValues
from mcp_functions.oauth.settings import read as read_settings
from mcp_functions.protocol.errors import FunctionStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.oauth.request import OAuthRequest
    from mcp_functions.oauth.safe_fetch import Network
    from mcp_functions.oauth.settings import FrontSettings
    from mcp_functions.seal.kms import Wrapping

# The endpoints that read a query or a form, with the function for each method. The body of /register is JSON.
ENDPOINTS: dict[str, dict[str, Callable[[OAuthRequest, Services], Response]]] = {
    "/authorize": {"GET": authorization.begin, "POST": authorization.decide},
    "/callback": {"GET": callback.receive},
    "/token": {"POST": token.issue},
    "/revoke": {"POST": token.revoke},
}


class Services(NamedTuple):
    """What the endpoints of one deployment share."""

    settings: FrontSettings
    values: SealedValues  # seals what browsers and clients carry
    clients: Clients  # finds and registers clients
    browsers: Browsers  # reads and writes cookies
    provider: Provider  # the OpenID Connect provider
    refusal_budget: CallerBudgets  # limits the requests of one caller that the provider refuses; see `token`
    now: Callable[[], float]  # the clock, in unix seconds

    def for_domain(self, context: Mapping[str, Any]) -> Services:
        """Return the services for the domain that a request called; they share what is kept in memory."""
        settings = self.settings.for_domain(context)
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
    services = services.for_domain(http.context)
    documents = discovery.documents(services.settings)
    if http.path in documents:
        return _answer_metadata(http, documents[http.path])
    path = _path_in_front(http.path, services.settings)
    if path == "/register" and services.settings.registration:
        return _answer_registration(http, services)
    if path in ENDPOINTS:
        return _answer_endpoint(event, http, path, services)
    observability.current().reason = "not_found"
    return answers.empty(404)


def _path_in_front(path: str, settings: FrontSettings) -> str:
    """Return the path of a request within the front.

    The URL of the front may have a path of its own, for example https://example.com/sign-in. A proxy may have removed
    it from the path of the request, so both "/sign-in/token" and "/token" are the endpoint "/token".
    """
    base = urlsplit(settings.url).path
    if path.startswith(f"{base}/"):
        return path.removeprefix(base)
    return path


def _answer_metadata(http: HttpRequest, document: Mapping[str, Any]) -> Response:
    observability.current().method = "metadata"
    if http.method != "GET":
        return _answer_other_method(http, ["GET"])
    return answers.document(document)


def _answer_registration(http: HttpRequest, services: Services) -> Response:
    observability.current().method = "register"
    if http.method != "POST":
        return _answer_other_method(http, ["POST"])
    return registration.register(http, services)


def _answer_endpoint(event: Mapping[str, Any], http: HttpRequest, path: str, services: Services) -> Response:
    observability.current().method = path.removeprefix("/")
    functions = ENDPOINTS[path]
    if http.method not in functions:
        return _answer_other_method(http, list(functions))
    request = read_request(event, http)
    return functions[http.method](request, services)


def _answer_other_method(http: HttpRequest, methods: list[str]) -> Response:
    """Answer a request whose method the path does not have."""
    # A preflight (CORS): a browser asks whether a page of another site may call the path. Only our pages are refused.
    if http.method == "OPTIONS" and not answers.is_page(http.path):
        return answers.empty(204, answers.PREFLIGHT)
    observability.current().reason = "http_method"
    return answers.empty(405, {"allow": ", ".join(methods)})


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
        FunctionStopped: the operator stopped the front.
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
    documents = DocumentCache(now, fetch_budget, network)
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
