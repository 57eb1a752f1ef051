"""How a question of a tool reaches its user. What the client declares in a request chooses the way.

    elicitation, in the mode of the question  ->  an InputRequiredResult; this room is not needed
    io.modelcontextprotocol/ui                ->  APP: a form that the host shows
    neither, and `ask_in_words` has the key   ->  WORDS: the model asks, and relays the answer
    neither                                   ->  a result in words: the user was not asked (`not_asked`)

The two ways below elicitation, APP and WORDS, are channels. A client's name never chooses a channel. A tool with
`requires=["elicitation"]` has none: its call ends with error -32021.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp_functions.protocol.errors import MissingRequiredClientCapability
from mcp_functions.protocol.messages import is_asked_in_app
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol

    from mcp_functions.protocol.wire_types import JSONObject

    class AskingHandler(Protocol):
        """What a question below elicitation needs of a handler."""

        kind: str
        name: str
        answer_within: int
        may_show_form: bool
        ask_in_words: Sequence[str]
        requires: Sequence[str]

        def describe(self) -> dict[str, Any]:
            """Write its entry in a list."""


EFFECTS = "Effects of earlier steps remain; later steps did not run."
NO_WAY = "this client declares no way to ask its user"
NO_TIME = "the work takes longer than one request, and this client does not continue it"
ADVICE = (
    "If the tool has an argument for it, ask the user yourself and call it again with the answer. "
    "Otherwise tell the user that a client with elicitation or MCP Apps can finish this call."
)


class Channel(NamedTuple):
    """A way to ask through a complete result, and to take the answer through a companion tool.

    Attributes:
        answered_by: who gives the answers, for the audit and the log: "app" or "model".
        label: the label under which its states are sealed, so that the other channel cannot open them.
        method: the method in the claims of its states. It tells the channels apart where an author's own codec, which
            has no labels, seals the states.
        suffix: the end of the companion's name, after the name of the tool.
    """

    answered_by: str
    label: bytes
    method: str
    suffix: str


APP = Channel("app", b"ks1/app", "apps/answer", "-form")
WORDS = Channel("model", b"ks1/words", "words/answer", "-answer")
CHANNELS = {channel.suffix: channel for channel in (APP, WORDS)}


def choose(handler: AskingHandler, questions: Mapping[str, JSONObject], declared: Mapping[str, Any]) -> Channel | None:
    """Choose the channel for the questions of one round; None if the user cannot be asked.

    Args:
        handler: the handler that asks.
        questions: the questions, by key; empty for a round that ended only because its time was up.
        declared: the client's capabilities on this request.
    """
    if any(question["method"] != "elicitation/create" for question in questions.values()):
        return None  # the client itself or its model must answer
    if handler.may_show_form and is_asked_in_app(declared):
        return APP
    # The model relays the answers that the author allows it to relay, but never a consent of the user.
    may_relay = handler.kind == "tool" and questions.keys() <= set(handler.ask_in_words)
    if may_relay and not any(_is_consent(question) for question in questions.values()):
        return WORDS
    return None


def is_required(handler: AskingHandler, lacking: Mapping[str, Any]) -> bool:
    """Tell whether the tool declares that it cannot do without a missing capability.

    Args:
        handler: the tool; its `requires` has names such as "elicitation" or "elicitation.url".
        lacking: the missing capabilities, as ClientCapabilities.
    """
    for required in handler.requires:
        capability, _dot, member = required.partition(".")
        if capability in lacking and (not member or member in lacking[capability]):
            return True
    return False


def refusal(
    lacking: Mapping[str, Any], questions: Mapping[str, JSONObject], *, earlier: bool = False
) -> MissingRequiredClientCapability:
    """Return error -32021 with the missing capabilities, and the questions in words.

    Args:
        lacking: the missing capabilities, as ClientCapabilities.
        questions: the questions that the tool would have asked, by key.
        earlier: whether the client is of 2025. Then the error's data has the questions too, for `legacy`.
    """
    if not questions:
        return MissingRequiredClientCapability(lacking)
    asks = {key: describe_request(question) for key, question in questions.items()}
    text = f". The server would have asked: {' / '.join(asks.values())}"
    if earlier:
        return MissingRequiredClientCapability(lacking, text, asks=asks)
    return MissingRequiredClientCapability(lacking, text)


def not_asked(
    handler: AskingHandler, questions: Mapping[str, JSONObject], lacking: Mapping[str, Any], *, earlier: bool = False
) -> str:
    """Return the text of a call whose user cannot be asked.

    Args:
        handler: the handler that asks.
        questions: the questions, by key; empty if the round ended only because its time was up.
        lacking: the capabilities that the client would need, as ClientCapabilities.
        earlier: whether the client is of 2025, for which `legacy` finds the words.

    Raises:
        MissingRequiredClientCapability: the tool requires the capability, or a prompt or a resource has no result that
            could say so, or the client is of 2025.
    """
    is_refused = earlier or handler.kind != "tool" or is_required(handler, lacking)
    if lacking and is_refused:
        raise refusal(lacking, questions, earlier=earlier)
    because = NO_WAY if questions else NO_TIME
    return unfinished(because, map(describe_request, questions.values()))


def unfinished(because: str, questions: Iterable[str], advice: str = ADVICE) -> str:
    """Say why a call did not finish, what it asks, and what to do instead.

    Args:
        because: why the user was not asked.
        questions: the questions in words (`describe_request`).
        advice: what the model should do.
    """
    asks = [f"It asks: {each}." for each in questions if each]
    return " ".join([f"Not finished: {because}.", *asks, EFFECTS, advice])


def _is_consent(question: JSONObject) -> bool:
    """Tell whether a question asks for a permission: a page, or a form with a yes-or-no field or no field at all."""
    params = cast("dict[str, Any]", question["params"])
    properties: dict[str, Any] = params.get("requestedSchema", {}).get("properties", {})
    return not properties or any(field.get("type") == "boolean" for field in properties.values())


def describe_request(request: JSONObject) -> str:
    """Return a question as text, for a model or a person whose client cannot show it.

    A form has its fields in brackets, "Where to? (city: string; class: first | second)", and a page has its address.
    """
    params = request.get("params", {})
    if request["method"] == "roots/list":
        return "the client's roots"
    if request["method"] == "sampling/createMessage":
        return "a message of the client's model"
    if params.get("mode") == "url":
        return f"{params['message']} ({params['url']})"
    fields = params["requestedSchema"]["properties"]
    described = [f"{name}: {_describe_field(field)}" for name, field in fields.items()]
    return f"{params['message']} ({'; '.join(described)})"


def _describe_field(field: Mapping[str, Any]) -> str:
    """Return the choices that a field of a form offers, or its description, or else its type."""
    choices = field.get("enum") or [choice["const"] for choice in field.get("oneOf", ())]
    if choices:
        return " | ".join(str(choice) for choice in choices)
    return str(field.get("description") or field.get("type"))
