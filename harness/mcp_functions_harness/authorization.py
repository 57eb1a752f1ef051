"""How a harness knows who calls it, like an API with the same AuthMode.

none     it does not know: everybody may call
jwt      by an access token of a local issuer, which gives one to every client
oauth    by an access token that a client gets at functions/oauth, the sign-in front before the issuer
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from mcp_functions_harness import catalog, environment, issuer
from mcp_functions_harness.api_gateway.authorizer import JwtAuthorizer
from mcp_functions_harness.environment import Variables
from mcp_functions_harness.issuer import Issuer
from mcp_functions_harness.loopback import Loopback

LocalAuthMode: TypeAlias = Literal["none", "jwt", "oauth"]
CLIENT_OF_FRONT = "local-front"  # the client id of the sign-in front at the issuer


class Authorization(NamedTuple):
    """The parts of the harness that depend on the mode."""

    issuer: Issuer | None  # issues access tokens; None with the mode none
    authorizer: JwtAuthorizer | None  # checks access tokens for the API; None with the mode none
    settings: Variables  # environment variables of the functions


def start(starting: ExitStack, mode: LocalAuthMode, api_url: str, resource: str, directory: Path) -> Authorization:
    """Start the issuer of a mode, until `starting` is closed.

    `api_url` is the URL of the API, without a path; `resource` that of the endpoint, which tokens are for.
    """
    if mode == "none":
        return Authorization(issuer=None, authorizer=None, settings={})
    loopback = starting.enter_context(Loopback(max_body=issuer.MAX_REQUEST))
    settings = environment.for_tokens(issuer=loopback.url, resource=resource)
    redirect_uris: dict[str, tuple[str, ...]] = {}
    if mode == "oauth":
        redirect_uris[CLIENT_OF_FRONT] = (f"{api_url}/callback",)
        settings |= environment.for_sign_in(url=api_url, client_id=CLIENT_OF_FRONT, scopes=scopes(directory))
    local_issuer = Issuer(loopback.url, resource, redirect_uris=redirect_uris, asks_for_user=mode == "oauth")
    loopback.start(local_issuer.answer)
    authorizer = JwtAuthorizer(local_issuer.url, [resource], lambda: local_issuer.jwks)
    return Authorization(local_issuer, authorizer, settings)


def make_token(local_issuer: Issuer | None, directory: Path) -> dict[str, object] | None:
    """Make an access token for the harness's page, with all scopes; None without an issuer."""
    if local_issuer is None:
        return None
    granted = scopes(directory)
    return {"token": local_issuer.token(scope=" ".join(granted)), "subject": issuer.USER, "scopes": granted}


def scopes(directory: Path) -> tuple[str, ...]:
    """Return the scopes that the functions of a directory need, as their catalog lists them."""
    return tuple(catalog.read_or_generate(directory).get("scopes", ()))
