"""Checks the options of `@tool` about asking and about an author's own app.

    requires=["elicitation"]      the client's capabilities that the tool cannot do without
    ask_in_words=["seat"]         keys of the questions whose answers the model may pass on
    app="ui://shop/cart"          the page of the author's own app (MCP Apps)
    visibility=["app"]            who may call the tool: the model or the app; without this option, both

A TypeError says what is wrong with an option.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# The names for `requires`: the members of ClientCapabilities that a question may need.
CAPABILITIES = (
    "elicitation",
    "elicitation.form",
    "elicitation.url",
    "sampling",
    "sampling.tools",
    "sampling.context",
    "roots",
)
APP_SCHEME = "ui://"


def read_requires(requires: Sequence[str]) -> tuple[str, ...]:
    """Read the names of the client's capabilities that a tool cannot do without.

    Raises:
        TypeError: a name is not a capability that a question may need.
    """
    return _known_names(requires, CAPABILITIES, 'requires is a list of capabilities, as in requires=["elicitation"]')


def read_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """Read the keys of the questions whose answers the model may pass on.

    Raises:
        TypeError: the option is not a list of texts.
    """
    if isinstance(keys, str) or not all(isinstance(key, str) for key in keys):
        message = 'ask_in_words is a list of keys of questions, as in ask_in_words=["seat"]'
        raise TypeError(message)
    return tuple(keys)


def add_app(meta: Mapping[str, Any] | None, app: str, visibility: Sequence[str]) -> Mapping[str, Any] | None:
    """Add the member `ui` to a tool's `_meta` (ext-apps, "Resource Discovery"), if the tool has an app or a visibility.

    Raises:
        TypeError: the URI is not one of an app, or the visibility is unknown.
    """
    if app and not (isinstance(app, str) and app.startswith(APP_SCHEME)):
        message = f'app is the URI of a resource, as in app="{APP_SCHEME}shop/cart"'
        raise TypeError(message)
    ui: dict[str, Any] = {}
    if app:
        ui["resourceUri"] = app
    if visibility:
        rule = 'visibility is a list of "model" and "app"'
        ui["visibility"] = list(_known_names(visibility, ("model", "app"), rule))
    if not ui:
        return meta
    return {**(meta or {}), "ui": ui}


def _known_names(names: Sequence[str], known: Sequence[str], rule: str) -> tuple[str, ...]:
    """Return the names of a list, or raise a TypeError with the rule."""
    if isinstance(names, str) or not all(name in known for name in names):
        message = f"{rule}; known are: {', '.join(known)}"
        raise TypeError(message)
    return tuple(names)
