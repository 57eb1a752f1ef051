"""The settings of a deployment, by their names in Python instead of environment variables."""

from __future__ import annotations

from typing import Any

from mcp_functions.settings import Settings


def make_settings(*, stack: str = "local", **values: Any) -> Settings:  # noqa: ANN401 - of any setting
    """Return settings with these values, and with the defaults of all others."""
    settings = Settings({"MCP_STACK": stack})
    assert values.keys() <= vars(settings).keys(), "a name is no setting"
    vars(settings).update(values)
    return settings
