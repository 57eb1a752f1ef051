"""The configuration that `serve` prints for clients: each line follows that client's own documentation."""

from __future__ import annotations

import json
import re
import shlex
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from mcp_functions_harness import Harness, banner

ROOT = Path(__file__).parents[2]
URL = "http://127.0.0.1:8000/mcp"
BANNER = banner.text(URL, {})
LINES_BEFORE_THE_TOKEN = 24  # of a terminal: the first of them is the URL


def line(client: str) -> str:
    """Return what is printed for a client, the line under its name included if there is one."""
    match = re.search(rf"^  {client} +(.*(?:\n {{16,}}\S.*)?)", BANNER, re.MULTILINE)
    assert match, client
    return match[1]


@pytest.mark.parametrize(
    ("client", "file", "configuration"),
    [
        ("VS Code", ".vscode/mcp.json", {"servers": {"local": {"type": "http", "url": URL}}}),
        ("Cursor", ".cursor/mcp.json", {"mcpServers": {"local": {"url": URL}}}),
        # its configuration is for processes alone; mcp-remote is one, and takes http:// of this machine
        (
            "Claude Desktop",
            "mcp-remote",
            {"mcpServers": {"local": {"command": "npx", "args": ["-y", "mcp-remote", URL]}}},
        ),
    ],
)
def test_a_client_with_a_configuration_file_gets_the_whole_file(
    client: str, file: str, configuration: dict[str, Any]
) -> None:
    before, brace, text = line(client).partition("{")
    assert file in before
    assert json.loads(brace + text) == configuration


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("Claude Code", ["claude", "mcp", "add", "--transport", "http", "local", URL]),
        ("MCP Inspector", ["npx", "@modelcontextprotocol/inspector", "--transport", "http", "--server-url", URL]),
    ],
)
def test_a_client_with_a_command_line_gets_the_command(client: str, words: list[str]) -> None:
    assert shlex.split(line(client)) == words


def test_curl_gets_a_request_that_works(tmp_path: Path) -> None:
    with Harness(ROOT / "functions", state_dir=tmp_path) as harness:
        command, url, option, body = shlex.split(line("curl").replace(URL, harness.url))
        assert (command, option) == ("curl", "--json")
        as_json = {"Content-Type": "application/json", "Accept": "application/json"}  # which --json is short for
        request = urllib.request.Request(url, body.encode(), as_json)  # noqa: S310 - loopback
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - loopback
            assert "book_trip" in {told["name"] for told in json.load(response)["result"]["tools"]}


def test_the_banner_begins_with_the_url_and_fits_on_a_screen() -> None:
    first, *rest = BANNER.splitlines()
    assert first == f"mcp-functions serves {URL}"
    assert len(rest) < LINES_BEFORE_THE_TOKEN
    assert max(map(len, rest)) <= 120


def test_the_banner_names_clients_of_2025() -> None:
    assert "of MCP 2026-07-28 or of 2025" in BANNER
