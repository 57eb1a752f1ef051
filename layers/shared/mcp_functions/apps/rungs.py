"""The rungs: how a question of a tool reaches its user. Each request chooses by what its client declares.

    elicitation, in the mode of the question  ->  an InputRequiredResult; this room is not needed
    io.modelcontextprotocol/ui                ->  APP: a form that the host shows
    neither, and `ask_in_words` has the key   ->  WORDS: the model asks, and relays the answer
    neither                                   ->  a result in words: the user was not asked

A client's name never chooses a lower rung. `@tool(requires=…)` refuses with -32021 instead of a lower rung.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp_functions.protocol.errors import MissingRequiredClientCapability, capability_names
from mcp_functions.protocol.messages import is_asked_in_app
from mcp_functions.rounds.input_requests import describe_request
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import ClassVar, Protocol

    from mcp_functions.protocol.wire_types import InputRequest

    class Asking(Protocol):
        """What the choice reads of a handler."""

        kind: ClassVar[str]
        form: bool
        ask_in_words: Sequence[str]
        requires: Sequence[str]


class Channel(NamedTuple):
    """A way to ask through a complete result, and to take the answer through a companion tool.

    Attributes:
        answered_by: who gives the answers, for the audit and the log: "app" or "model".
        label: of the seal of its states, so that no other rung opens them.
        method: in the claims of its states, which repeat the rung under an author's own codec.
        suffix: of the companion's name, after the name of the tool.

    """

    answered_by: str
    label: bytes
    method: str
    suffix: str


APP = Channel("app", b"ks1/app", "apps/answer", "-form")
WORDS = Channel("model", b"ks1/words", "words/answer", "-answer")
CHANNELS = {channel.suffix: channel for channel in (APP, WORDS)}


def choose(handler: Asking, questions: Mapping[str, InputRequest], declared: Mapping[str, Any]) -> Channel | None:
    """Choose the rung below elicitation for the questions of one round; None if the user cannot be asked.

    Args:
        handler: the tool that asks.
        questions: by key; empty for a round that ended only because its time was up.
        declared: the client's capabilities on this request.

    """
    if handler.form and is_asked_in_app(declared) and all(map(_is_elicitation, questions.values())):
        return APP
    is_relayable = all(is_relayed(handler, key, question) for key, question in questions.items())
    return WORDS if handler.kind == "tool" and is_relayable else None


def is_relayed(handler: Asking, key: str, question: InputRequest) -> bool:
    """Tell whether the model may relay the answer: the author allows it, and it is neither a page nor a consent."""
    if key not in handler.ask_in_words or not _is_elicitation(question):
        return False
    return not is_consent(question)


def is_consent(question: InputRequest) -> bool:
    """Tell whether a question asks for a permission: a page, or a form with a yes-or-no field or no field at all."""
    params = cast("dict[str, Any]", question["params"])
    properties: dict[str, Any] = params.get("requestedSchema", {}).get("properties", {})
    return not properties or any(field.get("type") == "boolean" for field in properties.values())


def is_required(handler: Asking, lacking: Mapping[str, Any]) -> bool:
    """Tell whether the tool declares that it cannot do without a missing capability.

    Args:
        handler: the tool; its `requires` has names such as "elicitation" or "elicitation.url".
        lacking: the missing capabilities, as ClientCapabilities.

    """
    names = {part for name in capability_names(lacking) for part in (name, name.partition(".")[0])}
    return not names.isdisjoint(handler.requires)


def refusal(
    lacking: Mapping[str, Any], questions: Mapping[str, InputRequest], *, earlier: bool
) -> MissingRequiredClientCapability:
    """Return error -32021 with the missing capabilities, and the questions in words.

    Args:
        lacking: the missing capabilities, as ClientCapabilities.
        questions: that the tool would have asked.
        earlier: whether the client is of 2025: `legacy` puts the questions, then also in the error's data, into words.

    """
    asks = {key: describe_request(question) for key, question in questions.items()}
    return MissingRequiredClientCapability(lacking, asks, earlier=earlier)


def _is_elicitation(question: InputRequest) -> bool:
    return question["method"] == "elicitation/create"
