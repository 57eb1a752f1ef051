"""docs/sign-in.md names the sealed values, variables and routes of the code."""

from __future__ import annotations

import re
from pathlib import Path

from mcp_functions.oauth import settings as oauth_settings
from mcp_functions.oauth.browsers import MAX_REMEMBERED
from mcp_functions.oauth.sealed_values import PURPOSES

ROOM = Path(oauth_settings.__file__).parent
OF_ALL_FUNCTIONS = {"MCP_OAUTH_URL", "MCP_OAUTH_CLIENT_ID", "MCP_OAUTH_BINDING", "MCP_OAUTH_SCOPE_PREFIX"}
PAGE = (ROOM / "sign-in.md").read_text(encoding="utf-8")


def test_the_documentation_lists_every_sealed_value_with_its_lifetime_and_length() -> None:
    rows = re.findall(r"^\| `(ks1/oauth-\w+)` \| .* \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert rows == [(each.label.decode(), str(each.lifetime_seconds), str(each.max_chars)) for each in PURPOSES]
    assert f"at most {MAX_REMEMBERED} names" in PAGE


def test_the_documentation_names_every_variable_that_the_server_reads() -> None:
    code = (ROOM / "settings.py").read_text(encoding="utf-8")
    read = {*re.findall(r'"(MCP_OAUTH_\w+)"', code), *OF_ALL_FUNCTIONS}
    assert read == set(re.findall(r"`(MCP_OAUTH_\w+)`", PAGE))


def test_the_documentation_names_every_route_of_the_server() -> None:
    source = (ROOM / "routes.py").read_text(encoding="utf-8") + (ROOM / "discovery.py").read_text(encoding="utf-8")
    for path in {*re.findall(r'"(/[a-z][\w.-]+)"', source), *re.findall(r'"(/\.well-known/[\w.-]+)"', source)}:
        assert path in PAGE, path
