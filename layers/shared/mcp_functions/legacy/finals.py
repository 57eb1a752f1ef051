"""The response that ends a call, as its client reads it: a result, an error, or the words for why nobody was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.legacy import projecting, revisions, words, writing
from mcp_functions.legacy.codes import RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED
from mcp_functions.protocol.errors import HandlerError, MissingRequiredClientCapability, ResourceNotFound
from mcp_functions.rounds.input_requests import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_functions.legacy.running import Call, Exchange, Outcome
    from mcp_functions.legacy.words import Why
    from mcp_functions.protocol.wire_types import InputRequest


def response(exchange: Exchange, call: Call, outcome: Outcome, why: Why) -> dict[str, Any]:
    """Write the response to a call that has come to its end.

    Args:
        exchange: that it ends in.
        call: the client's.
        outcome: of its last round.
        why: the client cannot be asked here what it says that it can be asked.

    """
    if outcome.result is not None:
        return writing.answer(call.id, projecting.result(call.method, outcome.result, exchange.revision))
    error = outcome.error or {}
    data = error.get("data")
    known: Mapping[str, Any] = data if isinstance(data, dict) else {}
    if error.get("code") == MissingRequiredClientCapability.code:
        required = known.get("requiredCapabilities", {})
        if "extensions" in required:
            return unanswered(call, (), "task")
        told = exchange.session.capabilities if exchange.session else {}
        asked = known.get("asks", {}).values() or [words.lacking(required)]
        lacks: Why = "client" if _has_words(exchange.revision, required) else "words"
        return unanswered(call, asked, why if _covers(told, required) else lacks)
    # "Resource not found: -32002"; 2026-07-28 says -32602, with the same `uri`
    if error.get("code") == ResourceNotFound.code and call.method == "resources/read" and "uri" in known:
        error = {**error, "code": RESOURCE_NOT_FOUND}
    return writing.failure(call.id, error)


def unasked(call: Call, outcome: Outcome, why: Why) -> dict[str, Any]:
    """Write the response to a call that cannot go on, because nobody can be asked or can wait.

    Args:
        call: the client's.
        outcome: of its last round: questions, or work without a question.
        why: it ends here.

    """
    asks = outcome.asks
    if asks and all(each.get("params", {}).get("mode") == "url" for each in asks.values()):
        # "URLElicitationRequiredError": the client opens the pages by itself, and calls again
        pages = [{**each["params"], "elicitationId": f"{call.id}-{key}"} for key, each in asks.items()]
        error = {"code": URL_ELICITATION_REQUIRED, "message": pages[0]["message"], "data": {"elicitations": pages}}
        return writing.failure(call.id, error)
    return unanswered(call, map(in_words, asks.values()), why if asks else "time")


def unanswered(call: Call, asked: Iterable[str], why: Why, *, code: int | None = None) -> dict[str, Any]:
    """Say in words what is asked and why nobody heard it: for the model where it reads results, else as an error."""
    text = words.unanswered(asked, why, code=code)
    if call.method == "tools/call":
        return writing.answer(call.id, {"content": [{"type": "text", "text": text}], "isError": True})
    return writing.refusal(call.id, HandlerError(text))


def refused(call: Call, asked: InputRequest, error: object) -> dict[str, Any]:
    """Write the response to a call whose question the client answered with an error.

    An elicitation with an error is no answer of the user's: "decline" and "cancel" are results. Of the error only its
    code is told, for its text may say anything.
    """
    code = error.get("code") if isinstance(error, dict) else None
    why: Why = "failed" if asked["method"] == "elicitation/create" else "refused"
    return unanswered(call, [in_words(asked)], why, code=code if type(code) is int else None)


def _has_words(revision: str, required: Mapping[str, Any]) -> bool:
    """Whether a client of a revision could have declared what is required: what it could not, no session remembers."""
    parts = ((family, members if isinstance(members, dict) else {}) for family, members in required.items())
    names = (name for family, members in parts for name in (family, *(f"{family}.{member}" for member in members)))
    return all(revisions.knows(revision, name) for name in names)


def _covers(told: Mapping[str, Any], required: Mapping[str, Any]) -> bool:
    return all(
        isinstance(told.get(name), dict) and _covers(told[name], member if isinstance(member, dict) else {})
        for name, member in required.items()
    )
