"""Writes docs/settings.md, and the variables of docs/contract.json, from the table of settings.

Run it as `python -m tests.support.settings_page`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp_functions.oauth.settings import OAuthSettings
from mcp_functions.settings import Setting, Settings, rows

PAGE = Path(__file__).parents[2] / "docs/settings.md"
CONTRACT = PAGE.with_name("contract.json")
HEAD = """# Settings

Functions read these environment variables at their first event. `template.yaml` sets those that most deployments
need. A wrong value refuses every request, and the log names the variable. Each name leads to a page about it.
`python -m tests.support.settings_page` writes this page.
"""
SIGN_IN = """The sign-in front, `functions/oauth`, reads
[more](../layers/shared/mcp_functions/oauth/sign-in.md#4-settings).
"""


def written() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, _table(Settings), SIGN_IN])


def _table(settings: type) -> str:
    lines = ["| variable | default | what it decides |", "|---|---|---|", *map(_line, rows(settings).values())]
    return "\n".join(lines) + "\n"


def _line(row: Setting[Any]) -> str:
    default = {True: "on", False: "off"}.get(row.default) if isinstance(row.default, bool) else row.default or ""
    shown = f"`{default}`" if default != "" else ""
    return f"| [`{row.variable}`]({row.page}.md) | {shown} | {row.about} |"


def contract() -> str:
    """Return the text of the contract. A person decides who requires a variable, and in which modes it is set."""
    told = json.loads(CONTRACT.read_text(encoding="utf-8"))
    before = told["variables"]
    table = [(row, "every function") for row in rows(Settings).values()]
    table += [(row, "sign-in") for row in rows(OAuthSettings).values()]
    told["variables"] = {
        row.variable: {"templateSets": [], **before.get(row.variable, {}), "about": row.about, "readBy": reader}
        for row, reader in table
    }
    return json.dumps(told, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
    CONTRACT.write_text(contract(), encoding="utf-8")
