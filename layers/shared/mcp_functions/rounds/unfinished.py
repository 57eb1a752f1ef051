"""How a call ends whose user cannot be asked: with a text for the model, or with error -32021.

Not finished: this client declares no way to ask its user. It asks: Which seat? (seat: aisle | window). Effects of …
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mcp_functions.protocol.constants import META_CLIENT_REVISION
from mcp_functions.protocol.errors import MissingRequiredClientCapability, capability_names
from mcp_functions.protocol.messages import value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mcp_functions.protocol.wire_types import ClientCapabilities, InputRequest, ListEntry, Meta, Schema

ASK_YOURSELF = (
    "If the tool has an argument for it, ask the user yourself and call it again with the answer. Otherwise t"
)


class AskingHandler(Protocol):
    """A tool, a prompt or a resource (`handlers.base`), as this room uses it."""

    kind: str  # "tool", "prompt" or "resource"
    name: str
    answer_within: int  # how long an answer is accepted, in seconds
    may_show_form: bool
    ask_in_words: Sequence[str]  # keys of the questions whose answers the model may pass on
    requires: Sequence[str]  # capabilities that the client must declare, as "elicitation.url"

    def describe(self) -> ListEntry:
        """Write its entry in a list."""


def explain(
    handler: AskingHandler, questions: Mapping[str, InputRequest], missing: ClientCapabilities, meta: Meta
) -> str:
    """Return the text of the result of such a call. It has no questions if the round ended because its time was up.

    Raises:
        MissingRequiredClientCapability: only an error can say so. The tool requires a missing capability, the handler
            is a prompt or a resource, or the client reads only errors.
    """
    needs_error = reads_errors(meta) or handler.kind != "tool" or is_required(handler, missing)
    if missing and needs_error:
        raise missing_capability_error(missing, questions, meta)
    if questions:
        reason = "this client declares no way to ask its user"
    else:
        reason = "the work takes longer than one request, and this client does not continue it"
    return unfinished_text(reason, map(describe_request, questions.values()), handler.kind, _finisher(handler, missing))


def _finisher(handler: AskingHandler, missing: ClientCapabilities) -> str:
    """Say which client can finish a call: what it needs is missing here, or it must continue a call."""
    needed = [name.removesuffix(".form") for name in capability_names(missing)] or ["elicitation"]
    may_show_form = handler.may_show_form and all(name.startswith("elicitation") for name in needed)
    return f"a client with {' and '.join(needed)}{' or MCP Apps' if may_show_form else ''}"


def reads_errors(meta: Meta) -> bool:
    """Tell whether the client makes its own result from an error: `legacy` does, for its clients of 2025."""
    return META_CLIENT_REVISION in meta


def is_required(handler: AskingHandler, missing: ClientCapabilities) -> bool:
    """Tell whether a handler declares that it cannot do without one of the missing capabilities."""
    return any(value_at(missing, *required.split(".")) is not None for required in handler.requires)


def missing_capability_error(
    missing: ClientCapabilities, questions: Mapping[str, InputRequest], meta: Meta
) -> MissingRequiredClientCapability:
    """Return error -32021 with the missing capabilities and the texts of the questions.

    For a client that reads errors, the error's data has the questions too.
    """
    if not questions:
        return MissingRequiredClientCapability(missing)
    described = {key: describe_request(question) for key, question in questions.items()}
    text = f". The server would have asked: {' / '.join(described.values())}"
    if reads_errors(meta):
        return MissingRequiredClientCapability(missing, text, asks=described)
    return MissingRequiredClientCapability(missing, text)


def unfinished_text(reason: str, questions: Iterable[str], kind: str, finisher: str) -> str:
    """Return the text that says why a call is not finished, what it asks, and what the model should do.

    Only a call of the kind "tool" has an argument for an answer. The finisher is a client that can finish the call.
    """
    asks = [f"It asks: {question}." for question in questions]
    effects = "Effects of earlier steps remain; later steps did not run."
    start = ASK_YOURSELF if kind == "tool" else "T"
    advice = f"{start}ell the user that {finisher} can finish this call."
    return " ".join([f"Not finished: {reason}.", *asks, effects, advice])


def describe_request(request: InputRequest) -> str:
    """Return the text of a question: of a form with its fields, "Where to? (city: string; class: first | second)"."""
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


def _describe_field(field: Schema) -> str:
    """Return the choices that a field of a form offers, or its description, or else its type."""
    choices = field.get("enum") or [choice["const"] for choice in field.get("oneOf", ())]
    if choices:
        return " | ".join(str(choice) for choice in choices)
    return str(field.get("description") or field.get("type"))
