"""Cognito: a sign-in for one resource (RFC 8707), and the revocation of refresh tokens (RFC 7009)."""

import json
from contextvars import ContextVar
from typing import Any
from urllib.parse import parse_qs

from .patch import Patch, module

SERVICE = "services.cognito"
APP = "app"
OK = 200
_resource = ContextVar("resource", default="")  # of the token that is being made


class _ResourceBinding:
    """Gives an access token the `aud` of its login, by replacing four functions of MiniStack.

    https://docs.aws.amazon.com/cognito/latest/developerguide/cognito-user-pools-define-resource-servers.html
    """

    def __init__(self) -> None:
        self.service = module(SERVICE)
        self._authorize = self.service.handle_oauth2_authorize
        self._redirect = self.service._issue_auth_code_redirect
        self._token, self._signed = self.service._oauth2_token, self.service._signed_jwt
        self._by_state: dict[tuple[str, str], str] = {}  # (client id, state) -> resource
        self._by_grant: dict[str, str] = {}  # code or refresh token -> resource

    def authorize(self, method: str, path: str, headers: Any, query: Any) -> Any:
        asked = {name: values[0] for name, values in query.items() if values}
        if "resource" in asked:
            self._by_state[asked.get("client_id", ""), asked.get("state", "")] = asked["resource"]
        return self._authorize(method, path, headers, query)

    def redirect(self, client_id: str, pool_id: str, *others: Any) -> Any:
        response = self._redirect(client_id, pool_id, *others)
        state = others[-1]
        resource = self._by_state.pop((client_id, state), "")
        code = parse_qs(response[1].get("Location", "").partition("?")[2]).get("code", [""])[0]
        servers = self.service._get_pool_unscoped(pool_id).get("_resource_servers", {})
        if resource in servers:
            self._by_grant[code] = resource
        return response

    def token(self, data: Any, query: Any, raw_body: bytes = b"", headers: Any = None) -> Any:
        form = {name: values[0] for name, values in parse_qs(raw_body.decode()).items()}
        resource = self._by_grant.get(form.get("code") or form.get("refresh_token", ""), "")
        reset = _resource.set(resource)
        try:
            response = self._token(data, query, raw_body, headers)
        finally:
            _resource.reset(reset)
        if resource and response[0] == OK:
            self._by_grant[json.loads(response[2]).get("refresh_token", "")] = resource
        return response

    def sign(self, claims: Any, pool_id: str = "", use: str = "") -> Any:
        resource = _resource.get()
        if resource and claims.get("token_use") == "access":
            claims = {**claims, "aud": resource}
        return self._signed(claims, pool_id, use)


def _resource_binding() -> None:
    binding = _ResourceBinding()
    binding.service.handle_oauth2_authorize = binding.authorize
    binding.service._issue_auth_code_redirect = binding.redirect
    binding.service._oauth2_token = binding.token
    binding.service._signed_jwt = binding.sign


def _revocation() -> None:
    """https://docs.aws.amazon.com/cognito/latest/developerguide/revocation-endpoint.html ."""
    service, app = module(SERVICE), module(APP)
    discovery, body_request = service.well_known_openid_configuration, app._handle_cognito_body_request

    def described(*arguments: Any) -> Any:
        status, headers, body = discovery(*arguments)
        document = json.loads(body)
        document["revocation_endpoint"] = document["token_endpoint"].replace("/token", "/revoke")
        return status, headers, json.dumps(document).encode()

    async def answered(method: str, path: str, headers: Any, body: bytes, query: Any) -> Any:
        if (method, path) != ("POST", "/oauth2/revoke"):
            return await body_request(method, path, headers, body, query)
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        client_id, secret = service._authenticate_client(headers, form)
        client = service._find_pool_by_client_id(client_id)[2]
        if not client or (client.get("ClientSecret") and client["ClientSecret"] != secret):
            return 400, {"Content-Type": "application/json"}, b'{"error":"invalid_client"}'
        service._revoke_token({"Token": form.get("token", "")})
        return 200, {}, b""

    service.well_known_openid_configuration = described
    app._handle_cognito_body_request = answered


PATCHES = (
    Patch(
        "resource-binding",
        "the parameter resource of a login is ignored; on AWS it is the token's aud",
        {
            f"{SERVICE}:handle_oauth2_authorize": "ee7115c343a8",
            f"{SERVICE}:_issue_auth_code_redirect": "14eaaa25cbe7",
            f"{SERVICE}:_oauth2_token": "e0739e03b5e3",
            f"{SERVICE}:_signed_jwt": "b9dfceb8b439",
        },
        _resource_binding,
    ),
    Patch(
        "revocation",
        "there is no /oauth2/revoke",
        {
            f"{SERVICE}:well_known_openid_configuration": "d32ec6f91fb1",
            f"{APP}:_handle_cognito_body_request": "a91f32c793d4",
        },
        _revocation,
    ),
)
