"""The hints of a decorator: annotations, icons, title, description and meta, as dicts or as types of the official SDK.

A client sees them in its lists. An option that breaks the specification is a TypeError that names the author's line.
"""

from __future__ import annotations

from datetime import date
from enum import IntEnum
from pathlib import Path
from typing import Any

import mcp_types as sdk
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_functions import resource, tool

HINTS = {"title": "T", "readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
ICON = sdk.Icon(src="https://x.example/i.png", mime_type="image/png", sizes=["48x48", "any"], theme="dark")


class Level(IntEnum):
    """A number that has its own class."""

    LOW = 0


class Sdk1Annotations(BaseModel, extra="allow"):
    """Annotations of version 1 of the SDK, whose models keep unknown members."""

    __module__ = "mcp.types"


def read() -> str:
    """Return an empty text."""
    return ""


@pytest.mark.parametrize("annotations", [HINTS, sdk.ToolAnnotations.model_validate(HINTS)])
def test_the_annotations_of_a_tool_may_be_a_dict_or_a_model(annotations: Any) -> None:  # noqa: ANN401
    assert tool(annotations=annotations)(read).describe()["annotations"] == HINTS


def test_a_tool_may_have_an_icon_of_the_sdk() -> None:
    assert tool(icons=(ICON,))(read).describe()["icons"] == [ICON.model_dump(by_alias=True)]


def test_a_resource_may_have_an_icon_and_annotations_of_the_sdk() -> None:
    annotations = sdk.Annotations(audience=["user"], priority=1, last_modified="2026-07-28T12:00:00Z")
    entry = resource("a://b", icons=[ICON], annotations=annotations)(read).describe()
    assert entry["icons"] == [ICON.model_dump(by_alias=True)]
    assert entry["annotations"] == {"audience": ["user"], "priority": 1, "lastModified": "2026-07-28T12:00:00Z"}


def test_a_date_in_meta_is_published_as_text() -> None:
    entry = resource("a://b", meta={"example.com/k": date(2026, 7, 28)})(read).describe()
    assert entry["_meta"] == {"example.com/k": "2026-07-28"}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            {"annotations": {"readonlyHint": True}},
            "it says 'readonlyHint', which is not known; known are: title, readOnly",
        ),
        (
            {"annotations": sdk.ToolAnnotations.model_validate({"readonlyHint": True})},
            "a dict or a model with these members is needed: title, readOnlyHint",
        ),
        ({"annotations": Sdk1Annotations(readonlyHint=True)}, "it says 'readonlyHint', which is not known"),  # type: ignore[call-arg]
        ({"annotations": sdk.Annotations(priority=1)}, "it says 'priority', which is not known"),
        (
            {"annotations": {"readOnlyHint": True, "read_only_hint": False}},
            "it says 'read_only_hint', which is not known",
        ),
        ({"annotations": {"readOnlyHint": "yes"}}, "readOnlyHint must be True or False"),
        ({"annotations": {"readOnlyHint": 1}}, "readOnlyHint must be True or False"),
        ({"annotations": {"title": 5}}, "title must be text"),
        ({"annotations": {None: True}}, "it says None, which is not known"),
        ({"annotations": [("readOnlyHint", True)]}, "a dict or a model with these members is needed: title"),
        ({"annotations": sdk.ToolAnnotations}, "a dict or a model with these members is needed: title"),
        ({"icons": {"src": "https://x.example/i"}}, "icons must be a list of icons, as in .*, not dict"),
        ({"icons": "https://x.example/i"}, "icons must be a list of icons, as in .*, not str"),
        ({"icons": b"\x89PNG"}, "icons must be a list of icons, as in .*, not bytes"),
        ({"icons": b""}, "icons must be a list of icons, as in .*, not bytes"),
        ({"icons": ["https://x.example/i"]}, r"icons\[0\]: a dict or a model with these members is needed: src"),
        ({"icons": [ICON, None]}, r"icons\[1\]: a dict or a model with these members is needed: src"),
        ({"icons": [ICON, {"mimeType": "image/png"}]}, r"icons\[1\] needs src, an http://, https:// or data: URI"),
        ({"icons": (ICON, {"src": "x"})}, r"icons\[1\]: src must be an http://, https:// or data: URI"),
        ({"icons": [{"src": "javascript:alert(1)"}]}, "src must be an http://, https:// or data: URI"),
        ({"icons": [{"src": "data:,", "sizes": "48x48"}]}, "sizes must be a list of sizes"),
        ({"icons": [{"src": "data:,", "sizes": ["any", "48"]}]}, r"icons\[0\]: sizes\[1\] must be .any., or a size"),
        ({"icons": [{"src": "data:,", "theme": "blue"}]}, 'theme must be "light" or "dark"'),
        ({"icons": [{"src": "data:,", "mimetype": "image/png"}]}, "it says 'mimetype', which is not known"),
        ({"meta": [1]}, "meta is a dict"),
        ({"meta": {1: 1}}, "_meta key 1"),
        ({"meta": {"example.com/k": object()}}, "JSON cannot carry meta"),
        ({"meta": {"example.com/k": float("nan")}}, "meta .it holds NaN, Infinity or too many digits."),
        ({"meta": {"example.com/k": "\ud83d"}}, "JSON cannot carry meta .it holds half of a surrogate pair."),
        ({"tags": 5}, "tags is a collection of words"),
        ({"tags": (word for word in ["billing"])}, "tags is a collection of words"),
        ({"tags": ["billing", ""]}, "tags is a collection of words"),
        ({"title": 5}, "title and description are text"),
        ({"description": b"x"}, "title and description are text"),
    ],
)
def test_the_error_for_an_invalid_option_names_the_authors_line(options: dict[str, Any], error: str) -> None:
    with pytest.raises(TypeError, match=error) as caught:
        tool(**options)(read)
    assert f"{Path(__file__).name}:" in str(caught.value)


@pytest.mark.parametrize(
    ("annotations", "error"),
    [
        ({"audience": "user"}, 'audience must be a list of "user" and "assistant"'),
        ({"audience": ("user", "model")}, r'audience\[1\] must be "user" or "assistant"'),
        ({"priority": 2}, "priority must be a number from 0 to 1"),
        ({"priority": True}, "priority must be a number from 0 to 1"),
        ({"priority": Level.LOW}, "priority must be a number from 0 to 1"),
        ({"lastModified": "yesterday"}, "lastModified must be a date"),
        ({"readOnlyHint": True}, "it says 'readOnlyHint', which is not known; known are: audience, priority"),
    ],
)
def test_invalid_annotations_of_a_resource_are_refused(annotations: Any, error: str) -> None:  # noqa: ANN401
    with pytest.raises(TypeError, match=error):
        resource("a://b", annotations=annotations)(read)


ICONS = st.fixed_dictionaries(
    {"src": st.sampled_from(["https://x.example/i", "data:,", 5, ""])},
    optional={
        "mimeType": st.sampled_from(["image/png", 5]),
        "sizes": st.sampled_from([["48x48"], ["any"], [], "48x48", [5]]),
        "theme": st.sampled_from(["light", "dark", "blue"]),
    },
)


def describe_icon(icon: dict[str, Any]) -> dict[str, Any] | None:
    """Return the icon that a list publishes; None if the decorator refuses it."""
    try:
        entry = tool(icons=[icon])(read).describe()  # type: ignore[list-item]
    except TypeError:
        return None
    return dict(entry["icons"][0])


def is_icon_of_the_sdk(icon: dict[str, Any]) -> bool:
    try:
        sdk.Icon.model_validate(icon)
    except ValueError:
        return False
    return bool(icon["src"])  # the SDK accepts an empty src


@given(ICONS)
def test_a_decorator_accepts_the_icons_that_the_sdk_accepts(icon: dict[str, Any]) -> None:
    expected = icon if is_icon_of_the_sdk(icon) else None
    assert describe_icon(icon) == expected
