"""`mcp-functions verify URL` with AuthMode oauth: the metadata of the server leads to the sign-in front."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from mcp_functions_harness import Harness
from mcp_functions_harness.auth import SIGN_IN_FILE
from mcp_functions_harness.loopback import HttpRequest, HttpResponse, json_response
from mcp_functions_harness.scaffold import files

from .conftest import FOLDERS, forward

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Verified

    Verify = Callable[..., Verified]
    Gate = Callable[..., str]

RESOURCE = "/.well-known/oauth-protected-resource"
FRONT = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
CLOSED = json_response(401, {"message": "Unauthorized"})


@pytest.fixture(scope="module")
def harness(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    functions = tmp_path_factory.mktemp("sign-in") / "functions"
    shutil.copytree(directory, functions)
    files.write(functions.parent, {SIGN_IN_FILE: files.template("samples/oauth/app.py", {})})
    with Harness(functions, state_dir=functions.parent / "state", auth="oauth") as running:
        yield running


def test_verify_accepts_a_server_with_a_sign_in_front(harness: Harness, verify: Verify) -> None:
    assert harness.issuer
    token = harness.issuer.token(subject="ann")
    verified = verify(harness.url, "--auth", "oauth", "--token", token)
    assert verified.code == 0
    assert verified.lines["endpoint"] == ("ok", f"{harness.url} answers; mode oauth, callers sign in at the front")
    assert verified.lines["closed routes"][1] == f"/mcp and {FOLDERS} functions refuse a caller without credentials"
    assert verified.lines["open routes"] == (
        "ok",
        f"OPTIONS /mcp, {RESOURCE}/mcp, {RESOURCE}, {FRONT}, {OPENID}",
    )
    assert verify(harness.url, "--auth", "jwt").failed() == {
        "closed routes": f"{harness.url} is in mode oauth, not jwt: callers sign in at the front"
    }


NOT_FOUND = json_response(404, {"message": "Not Found"})
UNUSABLE = [
    (FRONT, CLOSED, f"{FRONT} answers HTTP 401 to a caller without credentials"),
    (OPENID, NOT_FOUND, f"{OPENID} answers HTTP 404 to a caller without"),
    (FRONT, json_response(200, {"issuer": "https://x.example"}), f"{FRONT} names the issuer https://x.example, an"),
    ("/authorize", CLOSED, "/authorize of the sign-in answers HTTP 401"),
    ("/token", NOT_FOUND, "/token of the sign-in answers HTTP 404"),
]


@pytest.mark.parametrize("unusable", UNUSABLE, ids=[case[2] for case in UNUSABLE])
def test_verify_reports_a_sign_in_front_that_no_client_can_use(
    unusable: tuple[str, HttpResponse, str], harness: Harness, verify: Verify, gate: Gate
) -> None:
    path, answer, why = unusable
    verified = verify(gate(harness.url, _at_the_gate(harness.url, {path: answer})))
    assert list(verified.failed()) == ["open routes"]
    assert verified.failed()["open routes"].startswith(why)


def test_verify_reports_a_sign_in_front_without_an_endpoint(harness: Harness, verify: Verify, gate: Gate) -> None:
    def decide(request: HttpRequest) -> HttpRequest | HttpResponse:
        ours = _at_the_gate(harness.url, {})(request)
        if not (request.target == FRONT and isinstance(ours, HttpResponse)):
            return ours
        document: dict[str, Any] = json.loads(ours.body)
        del document["token_endpoint"]
        return json_response(200, document)

    failed = verify(gate(harness.url, decide)).failed()
    assert failed == {"open routes": f"{FRONT} has no token_endpoint"}


def _at_the_gate(url: str, answers: dict[str, HttpResponse]) -> Callable[[HttpRequest], HttpRequest | HttpResponse]:
    """Answer some paths, and let documents name the gate's address instead of the harness's."""

    def decide(request: HttpRequest) -> HttpRequest | HttpResponse:
        if request.target in answers:
            return answers[request.target]
        if not request.target.startswith("/.well-known/"):
            return request
        document = forward(url, request)
        ours = document.body.replace(url.split("/")[2].encode(), request.header("host").encode())
        return HttpResponse(document.status, document.headers, ours)

    return decide
