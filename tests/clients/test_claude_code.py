"""Claude Code signs in at the front, by its metadata document and by registration, while every process ends.

Claude Code needs no account for `claude mcp`. Its document is the test's own, at the URL that Claude Code sends.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest

from mcp_functions_harness import Harness, catalog
from tests.clients.claude_code import ClaudeCode, read
from tests.clients.test_hosts import DOCUMENT, FRONT, REGISTRATION
from tests.clients.test_oauth import FUNCTIONS
from tests.support import consent, https_site, modes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SITE, PATH = "claude.ai", "/oauth/claude-code-client-metadata"
REDIRECTS = ["http://localhost/callback", "http://127.0.0.1/callback"]
HANDLER = "def handler(event, context):\n"
# The handler runs in another process; this process imports the module too, for the catalog.
NO_DOCUMENTS = f"import os\n{HANDLER}    os.environ['MCP_OAUTH_CLIENT_DOCUMENTS'] = 'off'\n"
COLUMNS = 4000  # of the terminal, so that no link is broken into lines


def sign_in(claude: ClaudeCode, front: str) -> tuple[str, str]:
    """Sign in as ann; return the consent page, and what the program wrote.

    The program waits a few seconds only for each new process of the front. A busy machine may need two attempts.
    """
    page, written = try_to_sign_in(claude, front)
    return (page, written) if page else try_to_sign_in(claude, front)


def try_to_sign_in(claude: ClaudeCode, front: str) -> tuple[str, str]:
    page, written = "", ""
    # in a terminal, because the program refuses to sign in without one
    with claude.in_terminal("mcp", "login", "shop", "--no-browser", columns=COLUMNS) as (running, terminal):
        while text := read(terminal):
            written += text.decode(errors="replace")
            link = re.search(rf"({re.escape(front)}/authorize\?[!-~]+)[^!-~]", written)
            if link and not page:
                page, url = consent.sign_in(link[1], "ann")
                httpx2.get(url)
        running.wait(timeout=60)
    return page, written


@contextmanager
def serving(folder: Path, how: str) -> Iterator[Harness]:
    """Serve the shop behind a front that finds Claude Code's document at a site of this machine."""
    modes.skip_without_runtime()
    with https_site.serving(folder, SITE) as site:
        site.documents[PATH] = {
            "client_id": f"https://{SITE}{PATH}",
            "client_name": "Claude Code",
            "redirect_uris": REDIRECTS,
        }
        front = FRONT.format(port=site.port, authority=site.authority, public=https_site.PUBLIC)
        own = {"oauth": front if how == DOCUMENT else front.replace(HANDLER, NO_DOCUMENTS)}
        functions = folder / "shop" / "functions"
        for name, app in {**FUNCTIONS, **own}.items():
            (functions / name).mkdir(parents=True)
            (functions / name / "app.py").write_text(app, encoding="utf-8")
        catalog.write(functions, catalog.generate(functions))
        with Harness(functions, state_dir=folder, auth="oauth", runtime=True, reuse=False) as running:
            yield running


@pytest.mark.parametrize("how", [REGISTRATION, DOCUMENT])
def test_claude_code_signs_in_and_connects(tmp_path: Path, how: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    claude = ClaudeCode(home)
    with serving(tmp_path, how) as shop:
        claude.run("mcp", "add", "--transport", "http", "shop", shop.url)
        assert "Needs authentication" in claude.run("mcp", "list")
        page, written = sign_in(claude, shop.url.removesuffix("/mcp"))
        assert 'Authenticated with "shop"' in written
        assert (SITE in page) == (how == DOCUMENT)
        assert "localhost (a program on this computer)" in page
        assert "Connected" in claude.run("mcp", "list")
        pids = [invocation.pid for invocation in shop.invocations]
    assert len(set(pids)) == len(pids)
