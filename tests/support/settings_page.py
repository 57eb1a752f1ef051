"""Writes docs/settings.md from the table of settings: `python -m tests.support.settings_page`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp_functions.oauth.settings import OAuthSettings
from mcp_functions.settings import Setting, Settings, rows

PAGE = Path(__file__).parents[2] / "docs/settings.md"
HEAD = """# Settings

Functions read these environment variables at their first event. `template.yaml` sets those that most deployments
need. A wrong value refuses every request, and the log names the variable. The table in the code makes this page:
`python -m tests.support.settings_page`.
"""


def written() -> str:
    """Return the text of the page."""
    parts = [HEAD, _table(Settings), "Only the sign-in front, `functions/oauth`, reads these:\n", _table(OAuthSettings)]
    return "\n".join(parts)


def _table(settings: type) -> str:
    lines = [
        "| variable | default | what it decides | page |",
        "|---|---|---|---|",
        *map(_line, rows(settings).values()),
    ]
    return "\n".join(lines) + "\n"


def _line(row: Setting[Any]) -> str:
    default = {True: "on", False: "off"}.get(row.default) if isinstance(row.default, bool) else row.default or ""
    shown = f"`{default}`" if default != "" else ""
    return f"| `{row.variable}` | {shown} | {row.about} | [{row.page}]({row.page}.md) |"


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
