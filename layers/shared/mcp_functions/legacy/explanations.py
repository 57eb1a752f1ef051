"""What a client receives if its call was not finished: a text for the model, with the questions and the reason.

A tool's text is its result, so that the model can continue. A prompt or a resource has no such result, so its text is
an error. If a call asks only for pages to be opened, the client gets error -32042, opens the pages and calls again.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from mcp_functions.http.responses import accepts_event_stream
from mcp_functions.legacy import responses, revisions
from mcp_functions.legacy.errors import URL_ELICITATION_REQUIRED
from mcp_functions.protocol.errors import HandlerError, capability_names
from mcp_functions.protocol.messages import value_at
from mcp_functions.rounds.unfinished import describe_request, unfinished_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mcp_functions.legacy.call_ids import LegacyCall
    from mcp_functions.legacy.outcomes import RoundOutcome
    from mcp_functions.legacy.request import LegacyRequest
    from mcp_functions.protocol.wire_types import Error, InputRequest, InputRequestParams, JSONRPCMessage, JSONValue


class Reason(StrEnum):
    """Why a call was not finished, in the words of the text."""

    NOT_DECLARED = "this client did not declare support for it"
    NEVER_RESUMES = "this client does not resume a stream after the user's answer"
    NO_EVENT_STREAM = "it needs an event stream, which the response to this request cannot be"
    REVISION_TOO_EARLY = "this server does not ask clients of this revision, because they do not resume streams"
    NO_TABLE = "this server has no table for questions to clients of this revision (its operator can add one)"
    TABLE_UNAVAILABLE = "the server's table for questions is temporarily unavailable"
    NOT_IN_REVISION = "this client's revision has no request for it"
    NO_KEY = "the server's key for questions is not available"
    TOO_LARGE = "the call is too large to be kept while the user answers"
    TAKES_TOO_LONG = "the work takes longer than one request, and this server cannot continue it for this client"
    CLIENT_REFUSED = "the client refused"
    CLIENT_FAILED = "the client could not ask its user"
    RUNS_AS_TASK = "it runs as a task, which clients of this revision do not support"


ASKABLE_CLIENT = "a client of MCP revision 2026-07-28 that can be asked"
# Who can finish a call, for each reason that another client or time removes.
FINISHERS = {
    Reason.TABLE_UNAVAILABLE: "a later try",
    Reason.NO_KEY: "a later try",
    Reason.TAKES_TOO_LONG: "a client of MCP revision 2026-07-28",
    Reason.RUNS_AS_TASK: "a client of MCP revision 2026-07-28 with tasks",
}
# These clients speak 2025-11-25 and never resume a stream that ended, so a call that asks would hang. We tried Vercel's
# AI SDK (1.0). According to its source, Visual Studio Code resumes no stream of a POST.
NON_RESUMING_CLIENTS = ("ai-sdk-mcp-client", "Visual Studio Code", "Code - OSS")


def explanation(call: LegacyCall, questions: Iterable[str], reason: Reason, detail: str = "") -> JSONRPCMessage:
    """Return the response that explains why a call was not finished, with the texts of its questions."""
    kind = "tool" if call.method == "tools/call" else "other"
    text = unfinished_text(f"{reason}{detail}", questions, kind, FINISHERS.get(reason, ASKABLE_CLIENT))
    if kind == "tool":
        return responses.result_message(call.id, {"content": [{"type": "text", "text": text}], "isError": True})
    return responses.error_message(call.id, HandlerError(message=text).to_json())


def cannot_continue(call: LegacyCall, outcome: RoundOutcome, reason: Reason) -> JSONRPCMessage:
    """Return the response to a call that the server cannot ask about, or cannot give another round."""
    questions = outcome.questions
    if not questions:
        return explanation(call, (), Reason.TAKES_TOO_LONG)
    if any(value_at(question, "params", "mode") != "url" for question in questions.values()):
        return explanation(call, map(describe_request, questions.values()), reason)
    pages: list[InputRequestParams] = []
    for key, question in questions.items():
        pages.append({**question["params"], "elicitationId": f"{call.id}-{key}"})
    error: Error = {"code": URL_ELICITATION_REQUIRED, "message": pages[0]["message"], "data": {"elicitations": pages}}
    return responses.error_message(call.id, error)


def client_error(call: LegacyCall, question: InputRequest, error: object) -> JSONRPCMessage:
    """Return the response to a call whose question the client answered with a JSON-RPC error.

    The error is not the user's decision: "decline" and "cancel" are results. Only the error's code is repeated,
    because its text may contain anything.
    """
    asks_user = question["method"] == "elicitation/create"
    reason = Reason.CLIENT_FAILED if asks_user else Reason.CLIENT_REFUSED
    code = value_at(error, "code")
    detail = f" (it answered with JSON-RPC error {code})" if type(code) is int else ""
    return explanation(call, [describe_request(question)], reason, detail)


def missing_capability(request: LegacyRequest, call: LegacyCall, details: JSONValue) -> JSONRPCMessage:
    """Return the response to a call that needs a capability; `details` is the `data` of the error."""
    required = details.get("requiredCapabilities", {})
    if "extensions" in required:
        return explanation(call, (), Reason.RUNS_AS_TASK)
    names = capability_names(required)
    questions = details.get("asks", {}).values() or [f"something that needs the capability {', '.join(names)}"]
    return explanation(call, questions, _reason_not_to_use(request, names))


def reason_not_to_ask(request: LegacyRequest) -> Reason | None:
    """Return why this client cannot be asked in the response to this request; None if it can be asked."""
    session = request.session
    if session is None:
        return Reason.NOT_DECLARED
    if request.revision < request.deployment.settings.questions_since:
        return Reason.REVISION_TOO_EARLY
    if session.client[0].startswith(NON_RESUMING_CLIENTS):
        return Reason.NEVER_RESUMES
    if not accepts_event_stream(request.http):
        return Reason.NO_EVENT_STREAM
    if request.deployment.call_store is None:
        return Reason.NO_TABLE
    return None


def _reason_not_to_use(request: LegacyRequest, capabilities: Sequence[str]) -> Reason:
    """Return why a call could not use capabilities, for example "elicitation.form"."""
    declared = request.session.capabilities if request.session else {}
    if all(value_at(declared, *name.split(".")) is not None for name in capabilities):
        return reason_not_to_ask(request) or Reason.NOT_DECLARED
    can_declare = all(revisions.supports(request.revision, name) for name in capabilities)
    return Reason.NOT_DECLARED if can_declare else Reason.NOT_IN_REVISION
