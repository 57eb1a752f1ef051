"""Who calls is what the authorizer says, and never what a client can write."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from mcp_functions import events, identity
from mcp_functions.errors import Misconfigured
from mcp_functions.messages import Principal
from tests import wire

IAM = {"accountId": "123456789012", "userId": "AROAX:ann", "userArn": "arn:aws:sts::123456789012:assumed-role/r/ann"}
CLAIMS = {"iss": "https://id.example", "sub": "ann", "client_id": "app", "aud": "mcp", "jti": "secret"}


def of(authorizer: Any, mode: Literal["iam", "jwt", "none"], **sent: str) -> Principal | None:  # noqa: ANN401
    event = wire.event("{}", context={"authorizer": authorizer}, headers=sent)
    return identity.principal(events.read(event), mode)


def test_iam_names_account_and_user_id() -> None:
    assert of({"iam": IAM}, "iam") == Principal("aws:iam", "123456789012/AROAX:ann", "")


def test_a_token_names_issuer_subject_and_client() -> None:
    assert of({"jwt": {"claims": CLAIMS}}, "jwt") == Principal("https://id.example", "ann", "app")


@pytest.mark.parametrize(
    ("claims", "client"), [({"azp": "web"}, "web"), ({}, ""), ({"client_id": "", "azp": "w"}, "w")]
)
def test_the_client_is_client_id_or_azp_or_nobody(claims: dict[str, str], client: str) -> None:
    found = of({"jwt": {"claims": {"iss": "i", "sub": "s", **claims}}}, "jwt")
    assert found == Principal("i", "s", client)


def test_a_refreshed_token_is_the_same_principal() -> None:
    again = {**CLAIMS, "jti": "another", "exp": "1785000000"}
    assert of({"jwt": {"claims": CLAIMS}}, "jwt") == of({"jwt": {"claims": again}}, "jwt")


def test_without_authentication_a_caller_is_nobody_whatever_the_event_says() -> None:
    assert of({"iam": IAM, "jwt": {"claims": CLAIMS}}, "none") is None


@pytest.mark.parametrize("mode", ["iam", "jwt"])
@pytest.mark.parametrize(
    "authorizer",
    [
        None,
        {},
        {"lambda": {"sub": "ann"}},
        {"iam": None},
        {"iam": {}},
        {"iam": {**IAM, "userId": ""}},
        {"iam": {**IAM, "accountId": None}},
        {"jwt": None},
        {"jwt": {}},
        {"jwt": {"claims": None}},
        {"jwt": {"claims": {"iss": "i"}}},
        {"jwt": {"claims": {"iss": "i", "sub": ""}}},
        {"jwt": {"claims": {"iss": 1, "sub": "s"}}},
        {"claims": CLAIMS},
    ],
)
def test_a_route_without_its_authorizer_lets_nobody_in(authorizer: Any, mode: Literal["iam", "jwt"]) -> None:  # noqa: ANN401
    with pytest.raises(Misconfigured) as caught:
        of(authorizer, mode)
    expected = f"AuthMode is {mode}, but the event carries no such caller: the route has no authorizer"
    assert caught.value.reason == expected


def test_the_other_modes_caller_does_not_count() -> None:
    with pytest.raises(Misconfigured):
        of({"iam": IAM}, "jwt")
    with pytest.raises(Misconfigured):
        of({"jwt": {"claims": CLAIMS}}, "iam")


def test_headers_name_nobody() -> None:
    with pytest.raises(Misconfigured):
        of(None, "jwt", authorization="Bearer eyJ", **{"x-amzn-oidc-identity": "ann"})
