"""Claude Code signs in at the front, by its metadata document and by registration, while every process ends.

Claude Code needs no account for `claude mcp`. Its document is the test's own, at the URL that Claude Code sends.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import termios
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest

from mcp_functions_harness import Harness, catalog
from tests.clients.test_hosts import DOCUMENT, FRONT, REGISTRATION
from tests.clients.test_oauth import FUNCTIONS
from tests.conformance import node
from tests.support import consent, https_site, modes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SITE, PATH = "claude.ai", "/oauth/claude-code-client-metadata"
REDIRECTS = ["http://localhost/callback", "http://127.0.0.1/callback"]
HANDLER = "def handler(event, context):\n"
# The handler runs in another process; this process imports the module too, for the catalog.
NO_DOCUMENTS = f"import os\n{HANDLER}    os.environ['MCP_OAUTH_CLIENT_DOCUMENTS'] = 'off'\n"
PROGRAM = node.MODULES / "@anthropic-ai" / "claude-code" / "cli-wrapper.cjs"
ROWS, COLUMNS = 50, 4000  # of the terminal, so that no link is broken into lines
CHUNK = 1 << 16


class ClaudeCode:
    """Claude Code of a person, with a new home. It reaches no server but those of this machine."""

    def __init__(self, home: Path) -> None:
        self._command = [str(node.needed()), str(PROGRAM), "mcp"]
        self._environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        self._home = home

    def run(self, *words: str) -> str:
        """Run a command; return its output."""
        command = [*self._command, *words]
        return subprocess.run(  # noqa: S603 - pinned
            command, env=self._environment, cwd=self._home, capture_output=True, text=True, timeout=60, check=True
        ).stdout

    def sign_in(self, front: str) -> tuple[str, str]:
        """Sign in as ann; return the consent page, and what the program wrote.

        The program waits a few seconds only for each new process of the front. A busy machine may need two attempts.
        """
        page, written = self._try_to_sign_in(front)
        return (page, written) if page else self._try_to_sign_in(front)

    def _try_to_sign_in(self, front: str) -> tuple[str, str]:
        page, written = "", ""
        with self._terminal("login", "shop", "--no-browser") as terminal:
            while text := _read(terminal):
                written += text
                link = re.search(rf"({re.escape(front)}/authorize\?[!-~]+)[^!-~]", written)
                if link and not page:
                    page, url = consent.sign_in(link[1], "ann")
                    httpx2.get(url)
        return page, written

    @contextmanager
    def _terminal(self, *words: str) -> Iterator[int]:
        """Run a command in a new terminal, because the program refuses to sign in without one."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
        ends = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        command = [*self._command, *words]
        running = subprocess.Popen(command, env=self._environment, cwd=self._home, **ends)  # type: ignore[call-overload] # noqa: S603
        os.close(theirs)
        try:
            yield ours
            running.wait(timeout=60)
        finally:
            running.kill()
            running.wait()
            os.close(ours)


def _read(terminal: int) -> str:
    """Return what a program has just written; "" after its end."""
    try:
        return os.read(terminal, CHUNK).decode(errors="replace")
    except OSError:  # Linux raises this when the program has closed its end
        return ""


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
        claude.run("add", "--transport", "http", "shop", shop.url)
        assert "Needs authentication" in claude.run("list")
        page, written = claude.sign_in(shop.url.removesuffix("/mcp"))
        assert 'Authenticated with "shop"' in written
        assert (SITE in page) == (how == DOCUMENT)
        assert "localhost (a program on this computer)" in page
        assert "Connected" in claude.run("list")
        pids = [invocation.pid for invocation in shop.invocations]
    assert len(set(pids)) == len(pids)
