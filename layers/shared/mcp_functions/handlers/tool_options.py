"""Checks the options of `@tool` about asking and about an author's own app.

    requires=["elicitation"]      the client's capabilities that the tool cannot do without
    ask_in_words=["seat"]         keys of the questions whose answers the model may pass on
    app="ui://shop/cart"          the page of the author's own app (MCP Apps)
    visibility=["app"]            who may call the tool: the model or the app; without this option, both

A TypeError says what is wrong with an option.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict

    class AppMeta(TypedDict, total=False):
        """The member `ui` of a tool's `_meta`."""

        resourceUri: str
        visibility: list[str]


# The names for `requires`: the members of ClientCapabilities that a question may need.
CAPABILITIES = (
    "elicitation", "elicitation.form", "elicitation.url", "sampling", "sampling.tools", "sampling.context", "roots",
)  # fmt: skip
APP_SCHEME = "ui://"


def read_requires(requires: Sequence[str]) -> tuple[str, ...]:
    """Read the names of the client's capabilities that a tool cannot do without."""
    return _known_names(requires, CAPABILITIES, 'requires is a list of capabilities, as in requires=["elicitation"]')


def read_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """Read the keys of the questions whose answers the model may pass on."""
    if isinstance(keys, str) or not all(isinstance(key, str) for key in keys):
        raise TypeError('ask_in_words is a list of keys of questions, as in ask_in_words=["seat"]')
    return tuple(keys)


def read_app(app: str, visibility: Sequence[str]) -> AppMeta:
    """Read the options about a tool's app as the member `ui` of its `_meta` (ext-apps, "Resource Discovery")."""
    if app and not (isinstance(app, str) and app.startswith(APP_SCHEME)):
        raise TypeError(f'app is the URI of a resource, as in app="{APP_SCHEME}shop/cart"')
    ui: AppMeta = {}
    if app:
        ui["resourceUri"] = app
    if visibility:
        rule = 'visibility is a list of "model" and "app"'
        ui["visibility"] = list(_known_names(visibility, ("model", "app"), rule))
    return ui


def _known_names(names: Sequence[str], known: Sequence[str], rule: str) -> tuple[str, ...]:
    """Return the names of a list, or raise a TypeError with the rule."""
    if isinstance(names, str) or not all(name in known for name in names):
        raise TypeError(f"{rule}; known are: {', '.join(known)}")
    return tuple(names)
