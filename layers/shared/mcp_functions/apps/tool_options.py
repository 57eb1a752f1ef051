"""Reads the options of `@tool` about asking and about an author's own app.

    requires=["elicitation"]      the client's capabilities that the tool cannot do without
    ask_in_words=["seat"]         keys of the questions whose answers the model may relay
    app="ui://shop/cart"          the page of the author's own app (MCP Apps)
    visibility=["app"]            who may call the tool: the model, the app, or (left out) both

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
        TypeError: one is no capability that a question may need.
    """
    return _words(requires, CAPABILITIES, 'requires is a list of capabilities, as in requires=["elicitation"]')


def read_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """Read the keys of the questions whose answers the model may relay.

    Raises:
        TypeError: it is no list of texts.
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
        ui["visibility"] = list(_words(visibility, ("model", "app"), 'visibility is a list of "model" and "app"'))
    return {**(meta or {}), "ui": ui} if ui else meta


def _words(words: Sequence[str], known: Sequence[str], rule: str) -> tuple[str, ...]:
    if isinstance(words, str) or not all(word in known for word in words):
        message = f"{rule}; known are: {', '.join(known)}"
        raise TypeError(message)
    return tuple(words)
