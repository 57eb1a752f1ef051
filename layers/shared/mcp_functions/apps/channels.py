"""How a question of a tool reaches the user of a client without elicitation: by a channel, `APP` or `MODEL`.

The capabilities that the client declares in a request decide:

    elicitation                      ->  no channel is needed, and this module is not imported
    MCP Apps                         ->  `APP`: the host shows a form
    neither of them                  ->  `MODEL`: the model asks the user, and passes on the answer
                                         if the author allows that for each question: @tool(ask_in_words=["seat"])
    neither, and it is not allowed   ->  the result says that the user was not asked (`not_asked`)

A tool with `requires=["elicitation"]` gets no channel: its call ends with error -32021.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.protocol.errors import MissingRequiredClientCapability
from mcp_functions.protocol.messages import is_asked_in_app, value_at
from mcp_functions.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Protocol

    from mcp_functions.protocol.wire_types import JSONObject

    class AskingHandler(Protocol):
        """What a channel must know about a handler that asks."""

        kind: str  # "tool", "prompt" or "resource"
        name: str
        answer_within: int  # how long an answer is accepted, in seconds
        may_show_form: bool
        ask_in_words: Sequence[str]  # keys of the questions whose answers the model may pass on
        requires: Sequence[str]  # capabilities that it cannot do without, such as "elicitation.url"

        def describe(self) -> dict[str, Any]:
            """Write its entry in a list."""


# Parts of the text for a call that is not finished.
EFFECTS = "Effects of earlier steps remain; later steps did not run."
NO_WAY = "this client declares no way to ask its user"
NO_TIME = "the work takes longer than one request, and this client does not continue it"
ADVICE = (
    "If the tool has an argument for it, ask the user yourself and call it again with the answer. "
    "Otherwise tell the user that a client with elicitation or MCP Apps can finish this call."
)


class Channel(NamedTuple):
    """A way to ask through a complete result, and to take the answers through a second tool, the companion."""

    answered_by: str  # who gives the answers, for the audit and the log
    suffix: str  # the companion is named after its tool, with this suffix
    # A state of one channel does not open in the other. Its seal has this label, and its claims have this method,
    # because an author's own codec, which may replace the seal, knows no labels.
    label: bytes
    method: str


APP = Channel(answered_by="app", suffix="-form", label=b"ks1/app", method="apps/answer")
MODEL = Channel(answered_by="model", suffix="-answer", label=b"ks1/words", method="words/answer")
CHANNELS = {APP.suffix: APP, MODEL.suffix: MODEL}


def choose(handler: AskingHandler, questions: Mapping[str, JSONObject], declared: Mapping[str, Any]) -> Channel | None:
    """Choose the channel for the questions of one round; None if the user cannot be asked.

    Args:
        handler: the handler that asks.
        questions: the questions, by key; empty for a round that ended only because its time was up.
        declared: the client's capabilities on this request.
    """
    asks_the_user = all(question["method"] == "elicitation/create" for question in questions.values())
    if not asks_the_user:
        return None  # the client itself or its model must answer
    if handler.may_show_form and is_asked_in_app(declared):
        return APP
    if handler.kind != "tool":
        return None
    for key, question in questions.items():
        # The user gives a consent in person. The author cannot allow the model to pass it on.
        if key not in handler.ask_in_words or _is_consent(question):
            return None
    return MODEL  # also without a question: the model may continue the call of each tool


def is_required(handler: AskingHandler, missing: Mapping[str, Any]) -> bool:
    """Tell whether the tool declares that it cannot do without a missing capability.

    Args:
        handler: the tool; its `requires` has names such as "elicitation" or "elicitation.url".
        missing: the missing capabilities, as ClientCapabilities.
    """
    for required in handler.requires:
        capability, _dot, member = required.partition(".")
        if capability not in missing:
            continue
        if not member or member in missing[capability]:
            return True
    return False


def refusal(
    missing: Mapping[str, Any], questions: Mapping[str, JSONObject], *, earlier: bool = False
) -> MissingRequiredClientCapability:
    """Return error -32021 with the missing capabilities, and the questions in words.

    Args:
        missing: the missing capabilities, as ClientCapabilities.
        questions: the questions that the tool would have asked, by key.
        earlier: whether the client is of 2025. Then the error's data has the questions too, for `legacy`.
    """
    if not questions:
        return MissingRequiredClientCapability(missing)
    described = {key: describe_request(question) for key, question in questions.items()}
    text = f". The server would have asked: {' / '.join(described.values())}"
    if earlier:
        return MissingRequiredClientCapability(missing, text, asks=described)
    return MissingRequiredClientCapability(missing, text)


def not_asked(
    handler: AskingHandler, questions: Mapping[str, JSONObject], missing: Mapping[str, Any], *, earlier: bool = False
) -> str:
    """Return the text of the result of a call whose user cannot be asked.

    Args:
        handler: the handler that asks.
        questions: the questions, by key; empty if the round ended only because its time was up.
        missing: the capabilities that the client would need, as ClientCapabilities.
        earlier: whether the client is of 2025: then `legacy` makes the result from the error.

    Raises:
        MissingRequiredClientCapability: only an error can say so. The tool requires the capability, the handler is a
            prompt or a resource, or the client is of 2025.
    """
    needs_error = earlier or handler.kind != "tool" or is_required(handler, missing)
    if missing and needs_error:
        raise refusal(missing, questions, earlier=earlier)
    because = NO_WAY if questions else NO_TIME
    return unfinished(because, map(describe_request, questions.values()))


def unfinished(because: str, questions: Iterable[str], advice: str = ADVICE) -> str:
    """Return the text that says why a call is not finished, what it asks, and what to do instead.

    Args:
        because: why the user was not asked.
        questions: the questions in words (`describe_request`).
        advice: what the model should do.
    """
    asks = [f"It asks: {question}." for question in questions]
    return " ".join([f"Not finished: {because}.", *asks, EFFECTS, advice])


def _is_consent(question: JSONObject) -> bool:
    """Tell whether a question asks for a permission: a page, or a form with a yes-or-no field or no field at all."""
    fields = value_at(question, "params", "requestedSchema", "properties")
    if not fields:
        return True
    return any(field.get("type") == "boolean" for field in fields.values())


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
