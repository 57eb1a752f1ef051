"""Prompts, resources and templates: their entries in lists, their results, and the completion of their arguments.

(This module has no `from __future__ import annotations`, because the decorators must find types in the annotations, and
not text.)
"""

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any, Literal

import mcp_types
import pytest
from pydantic import BaseModel

from mcp_functions import Declined, Elicit, ToolError, prompt, resource
from mcp_functions.protocol.errors import DeveloperError, InvalidParams
from tests.support.conversations import talk_to

# Prompts


@prompt(title="Brief")
def briefing(topic: Annotated[str, "What about"], minutes: int = 5, tone: Literal["dry", "warm"] = "dry") -> str:
    """Write a briefing."""
    return f"{topic} {minutes + 1} {tone}"


def test_a_prompt_is_described_with_its_arguments() -> None:
    assert briefing.describe() == {
        "name": "briefing",
        "title": "Brief",
        "description": "Write a briefing.",
        "arguments": [
            {"name": "topic", "description": "What about", "required": True},
            {"name": "minutes", "required": False},
            {"name": "tone", "required": False},
        ],
    }


def test_the_arguments_of_a_prompt_are_texts_and_are_read_by_their_types() -> None:
    result = talk_to(briefing).get(topic="5", minutes="9").result
    assert result["description"] == "Write a briefing."
    assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": "5 10 dry"}}]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "Argument 'topic': it is missing"),
        ({"topic": "x", "minutes": "many"}, "Argument 'minutes': must be an integer"),
        ({"topic": "x", "tone": "hunter2"}, 'Argument \'tone\': must be one of "dry", "warm"'),
        ({"topic": "x", "more": ""}, "Unknown argument 'more'; known are: minutes, tone, topic"),
    ],
)
def test_invalid_arguments_of_a_prompt_are_invalid_params(arguments: dict[str, str], reason: str) -> None:
    assert talk_to(briefing).get(**arguments).error == {"code": -32602, "message": reason}


@pytest.mark.parametrize("failure", [ToolError("Nobody there"), Declined("k", "Nobody there")])
def test_the_error_of_a_failed_prompt_has_the_reason(failure: Exception) -> None:
    @prompt
    def failing() -> str:
        raise failure

    assert "Nobody there" in talk_to(failing).get().error["message"]


# Resources and templates


@resource("config://app", name="config", mime_type="application/json", size=7, ttl_ms=1000, cache_scope="public")
def config() -> dict[str, int]:
    """Read the configuration."""
    return {"a": 1}


@resource("tickets://{project}/{number}", title="Ticket", annotations={"audience": ["user"]})
def ticket(project: str, number: int) -> str:
    """Read a ticket."""
    return f"{project} {number + 1}"


def test_a_resource_is_described_by_its_uri() -> None:
    assert config.describe() == {
        "uri": "config://app",
        "name": "config",
        "description": "Read the configuration.",
        "mimeType": "application/json",
        "size": 7,
    }


def test_a_template_is_described_by_its_uri_template() -> None:
    assert ticket.describe() == {
        "uriTemplate": "tickets://{project}/{number}",
        "name": "ticket",
        "title": "Ticket",
        "description": "Read a ticket.",
        "annotations": {"audience": ["user"]},
    }


def test_a_resource_is_read_with_its_cache_lifetime() -> None:
    result = talk_to(config).read("config://app").result
    assert result["contents"] == [{"uri": "config://app", "mimeType": "application/json", "text": '{"a":1}'}]
    assert result["ttlMs"] == 1000
    assert result["cacheScope"] == "public"


def test_a_template_is_read_with_the_variables_of_the_uri_and_is_private_by_default() -> None:
    result = talk_to(ticket).read("tickets://A%2FB/16").result
    assert result["contents"] == [{"uri": "tickets://A%2FB/16", "mimeType": "text/plain", "text": "A/B 17"}]
    assert result["ttlMs"] == 0
    assert result["cacheScope"] == "private"


def test_an_invalid_variable_is_invalid_params() -> None:
    error = talk_to(ticket).read("tickets://A/x").error
    assert error == {"code": -32602, "message": "Argument 'number': must be an integer"}


def test_camel_case_is_for_forms_and_never_for_the_variables_of_a_template() -> None:
    class Reason(BaseModel):
        why_now: str

    @resource("items://{item_id}", camel_case=True)
    def item(item_id: int, *, elicit: Elicit) -> str:
        return f"{item_id} {elicit('why', 'Why?', Reason).why_now}"

    assert talk_to(item).read("items://7").accept(why={"whyNow": "now"}).text == "7 now"


# Completion


@prompt
def greet(language: str, name: str = "") -> str:
    return f"{language} {name}"


@greet.complete("language")
def complete_language(value: str, arguments: Mapping[str, str]) -> list[str]:
    known = ["polish", "portuguese", arguments.get("name", "")]
    return [language for language in known if language.startswith(value)]


def test_the_declared_completer_completes_its_argument() -> None:
    assert greet.has_completers
    assert greet.find_completions("language", "po", {"name": "pod"}) == {
        "completion": {"values": ["polish", "portuguese", "pod"], "total": 3, "hasMore": False}
    }


def test_an_argument_without_a_completer_has_no_completions() -> None:
    found = greet.find_completions("name", "x", {})
    assert found == {"completion": {"values": [], "total": 0, "hasMore": False}}


def test_an_unknown_argument_cannot_be_completed() -> None:
    with pytest.raises(InvalidParams, match="names no argument of this reference"):
        greet.find_completions("colour", "x", {})


def test_a_completer_remains_callable() -> None:
    assert complete_language("pol", {}) == ["polish"]


def find_completions(returned: object) -> dict[str, Any]:
    """Complete an argument with a completer that returns this value."""

    @prompt
    def offer(tone: str) -> str:
        return tone

    offer.complete("tone")(lambda _value, _arguments: returned)  # type: ignore[type-var]
    completion: dict[str, Any] = offer.find_completions("tone", "", {})["completion"]
    return completion


def test_a_hundred_completions_are_sent_and_the_rest_is_counted() -> None:
    completion = find_completions([str(number) for number in range(101)])
    assert len(completion["values"]) == 100
    assert completion["total"] == 101
    assert completion["hasMore"] is True


class Tone(Enum):
    MILD = "mild"


def test_a_completion_may_be_a_number_or_the_member_of_an_enum() -> None:
    assert find_completions([3, 0.5, Tone.MILD, "x"])["values"] == ["3", "0.5", "mild", "x"]


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ("abc", "returned str"),
        ({"a": 1}, "returned dict"),
        (mcp_types.Completion(values=["a"]), "holds tuple"),
        ([mcp_types.TextContent(type="text", text="a")], "holds mcp_types._types.TextContent"),
        ([b"a"], "holds bytes"),
        ([None], "holds NoneType"),
        ([True], "holds bool"),
    ],
)
def test_a_completer_returns_only_texts(returned: object, problem: str) -> None:
    with pytest.raises(DeveloperError, match=f"a completer returns a list of texts, and this one {problem}$"):
        find_completions(returned)


def test_only_an_argument_can_have_a_completer() -> None:
    with pytest.raises(TypeError, match="briefing has no argument 'x' to complete; it has: topic, minutes, tone"):
        briefing.complete("x")
