"""The official Python client signs in at the front of `serve --auth oauth`: it consents, and the issuer asks who."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import httpx2
import pytest

from mcp_functions_harness import Harness
from mcp_functions_harness.lambdas.functions import SIGN_IN
from mcp_functions_harness.problems import Problem
from tests.clients.people import text
from tests.clients.signing_in import SigningIn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp import Client

SAMPLES = Path(__file__).parents[2] / "functions"


class AtTheFront(SigningIn):
    """A person whose browser shows the consent page, and then the issuer's page."""

    async def _open_browser(self, url: str) -> None:
        front = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        async with httpx2.AsyncClient() as browser:
            page = await browser.get(url)
            form = {"request": _hidden(page.text, "request"), "decision": "allow"}
            provider = (await browser.post(f"{front}/authorize", data=form, headers={"origin": front})).headers[
                "location"
            ]
            assert "Sign in" in (await browser.get(provider)).text
            back = (await browser.get(f"{provider}&{urlencode({'login_hint': self.name})}")).headers["location"]
            assert back.startswith(f"{front}/callback?")
            self._landed = (await browser.get(back)).headers["location"]


def _hidden(page: str, name: str) -> str:
    match = re.search(rf'name="{name}" value="([^"]+)"', page)
    assert match, page
    return match[1]


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with Harness(SAMPLES, state_dir=tmp_path_factory.mktemp("state"), auth="oauth") as running:
        yield running


def add(client: Client) -> Any:  # noqa: ANN401 - awaited by the client
    return client.call_tool("add", {"a": 2, "b": 3})


def test_a_client_registers_at_the_sign_in_front_and_calls_with_the_token_of_the_issuer(
    harness: Harness,
) -> None:
    ann = AtTheFront(harness.url)
    assert "5" in text(ann.use(add))
    assert [seen for seen, _ in ann.seen] == [
        "POST /mcp tools/call",
        "GET /.well-known/oauth-protected-resource/mcp",
        "GET /.well-known/oauth-authorization-server",
        "POST /register",
        "POST /token authorization_code",
        "POST /mcp tools/call",
        "POST /mcp tools/list",
    ]
    held = ann.storage.tokens
    assert held
    assert held.refresh_token
    assert held.refresh_token.startswith("ks1.")


def test_a_client_refreshes_its_token_at_the_sign_in_front(harness: Harness) -> None:
    ann = AtTheFront(harness.url)
    ann.use(add)
    before = ann.access_token
    ann.let_expire()
    assert "5" in text(ann.use(add))
    assert ann.access_token != before
    assert ann.seen[-3] == ("POST /token refresh_token", 200)


def test_every_request_of_a_sign_in_may_reach_another_process(tmp_path: Path) -> None:
    """Each is a process of the real runtime, and has what the template sets with `oauth`, and nothing else."""
    with Harness(SAMPLES, state_dir=tmp_path, auth="oauth", runtime=True, reuse=False, on_log=_ignore) as running:
        assert "5" in text(AtTheFront(running.url).use(add))


def _ignore(_folder: str, _line: str) -> None:
    pass


def test_the_error_for_a_missing_sign_in_front_names_the_command_that_writes_it(tmp_path: Path) -> None:
    (tmp_path / "functions" / "one").mkdir(parents=True)
    (tmp_path / "functions" / "one" / "app.py").write_text("handler = print\n", encoding="utf-8")
    with (
        pytest.raises(Problem, match=r"mcp-functions auth oauth"),
        Harness(tmp_path / "functions", state_dir=tmp_path, auth="oauth"),
    ):
        pass


@pytest.mark.parametrize("auth", ["none", "oauth"])
def test_only_oauth_has_the_routes_of_the_sign_in_front(tmp_path: Path, auth: Any) -> None:  # noqa: ANN401
    with Harness(SAMPLES, state_dir=tmp_path, auth=auth) as running, httpx2.Client() as http:
        origin = running.url.removesuffix("/mcp")
        assert http.get(f"{running.url}/{SIGN_IN}").status_code == 404
        assert http.get(f"{origin}/.well-known/jwks.json").status_code == (200 if auth == "oauth" else 404)
