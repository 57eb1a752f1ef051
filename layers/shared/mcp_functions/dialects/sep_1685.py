"""SEP-1685, `state` beside the server's request: the client returns it with its response, and no server stores it.

The proposal has three formats, and a client chooses one with `option`, among its experimental capabilities:

    no option   the server sends one request with a `state`; the client's response has it too
    option 1    `dependent_requests` holds all requests of a round, with one state
    option 2    `dependent_requests` holds all requests of a round, each with its own state

A round is one run of the handler of a call; here it ends with questions. A turn is what the client must answer next.
A state is a sealed string, or an object with it if the client declares `"state": "object"`.

A response without the state still has the id of its request, as JSON-RPC requires. So the id is the same sealed text,
where the proposal's server looks into its database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.dialects import turn_state
from mcp_functions.dialects.dialect import Dialect, declaration, is_response, is_unfinished, stream_event
from mcp_functions.dialects.turn_state import TurnQuestion, TurnState
from mcp_functions.protocol.errors import InvalidParams, InvalidRequestState, StateTooLarge
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import ResponseBody, Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dialects.dialect import DialectContext, Next
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.exchange import Continuation
    from mcp_functions.protocol.messages import AnyResult, Request
    from mcp_functions.protocol.wire_types import JSONValue

NAME = "sep-1685"
SEALED = "sealed"  # the only member of a state that is an object
# The key and the request that carry the state of a round without questions, which ended for lack of time.
PING: tuple[str, Mapping[str, Any]] = ("", {"method": "ping"})
SHARED = 1  # option 1
EACH = 2  # option 2
INVALID_OPTIONS = 'experimental["sep-1685"] may hold "option": 1 or 2, and "state": "string" or "object"'
INVALID_RESPONSES = (
    'dependent_responses must be {"responses": [{"result": …}, …]}, with the "state" that the round came with'
)


class Options(NamedTuple):
    """The client's choices."""

    option: int  # SHARED, EACH, or 0 for no option
    has_objects: bool  # True if its states are objects


def answer(context: DialectContext, then: Next, request: Request) -> AnyResult:
    """Answer a request; a call that asks a client of this dialect becomes a turn.

    Raises:
        InvalidParams: the client's options or its answers are malformed.
        InvalidRequestState: a state is invalid.
    """
    declared = declaration(request, NAME)
    if declared is None:
        return then(request)
    options = _options(declared)
    if options.option:
        request = _modern_retry(context, request, options)
    modern = then(request)
    if not is_unfinished(request, modern) or not isinstance(modern, Result):
        return modern
    write = _write_round if options.option else _write_request
    try:
        return write(context, request, modern, options)
    except StateTooLarge as error:
        return turn_state.too_large(context, request, error)


def token(_http: HttpRequest, body: object) -> str | None:
    """Return the state of a response, or its id if it has no state.

    Raises:
        InvalidRequestState: the state is not one that this server has sent.
    """
    if not is_response(body) or not isinstance(body["id"], str):
        return None
    # "servers that need state can detect its absence in the response and fall back gracefully"
    return _unpack(body["state"]) if "state" in body else str(body["id"])


def continue_turn(context: DialectContext, http: HttpRequest, body: JSONValue) -> Continuation:
    """Return the call that a response continues.

    Raises:
        InvalidRequestState: the state is invalid, or belongs to another request.
    """
    sealed = token(http, body)
    if sealed is None or body["id"] != sealed:
        raise InvalidRequestState(reason="another_request")
    turn = turn_state.open_turn(context, NAME, sealed, http)
    (question,) = turn.asked.values()  # this format asks one question in each turn
    answers = {question.key: turn_state.response_result(body, question)}
    return turn_state.repeat_call(http, turn, _without_ping(answers))


def _write_request(context: DialectContext, request: Request, modern: Result, options: Options) -> Result:
    """Write the first question as a request of the server, and end the stream.

    Each response is a separate POST, and no server joins two of them. So the other questions follow in later turns.
    """
    requests: Mapping[str, Any] = modern.result["inputRequests"]
    key, question = next(iter(requests.items()), PING)  # the first question, if the round has one
    asked = {"": TurnQuestion(key, question["method"])}
    turn = TurnState(modern.result["requestState"], asked, turn_state.call_parts(request))
    sealed = turn_state.seal_turn(context, NAME, request, turn)
    # "The `state` field is a top-level field of the JSON-RPC message rather than a sub-field of `params`"
    message = {"jsonrpc": "2.0", "id": sealed, "state": _pack(sealed, options), **question}
    return modern._replace(body=_stream(modern, message))


def _write_round(context: DialectContext, request: Request, modern: Result, options: Options) -> Result:
    """Write all questions of a round as one message, with one state or with a state for each question."""
    requests: Mapping[str, Any] = modern.result["inputRequests"]
    if options.option == SHARED:
        asked = [TurnQuestion(key, question["method"]) for key, question in requests.items()]
        state = _round_state(context, request, modern, options, asked)
        dependent: dict[str, Any] = {"state": state, "requests": [dict(question) for question in requests.values()]}
    else:
        dependent = {"requests": []}
        for key, question in requests.items() or [PING]:
            state = _round_state(context, request, modern, options, [TurnQuestion(key, question["method"])])
            dependent["requests"].append({"state": state, **question})
    message = {"jsonrpc": "2.0", "id": request.message["id"], "dependent_requests": dependent}
    if modern.notifications:
        return modern._replace(body=_stream(modern, message))
    return modern._replace(body=ResponseBody(dumps(message), is_stream=False))


def _stream(modern: Result, last: Mapping[str, Any]) -> ResponseBody:
    """Return an event stream with the notifications of a result, and then one message."""
    events = [stream_event(message) for message in (*modern.notifications, last)]
    return ResponseBody("".join(events), is_stream=True)


def _round_state(
    context: DialectContext, request: Request, modern: Result, options: Options, asked: list[TurnQuestion]
) -> str | dict[str, str]:
    """Return a state with some questions of a round. The client repeats the call itself, so it is not in the state."""
    numbered = {str(number): question for number, question in enumerate(asked)}
    turn = TurnState(modern.result["requestState"], numbered, {})
    sealed = turn_state.seal_turn(context, f"{NAME}/{options.option}", request, turn)
    return _pack(sealed, options)


def _modern_retry(context: DialectContext, request: Request, options: Options) -> Request:
    """Return a call with the answers of `dependent_responses`, a member beside the params of a repeated call."""
    message: dict[str, Any] = dict(request.message)
    dependent = message.pop("dependent_responses", None)
    params = {name: value for name, value in request.params.items() if name not in ("inputResponses", "requestState")}
    if dependent is not None:
        responses = dependent.get("responses") if isinstance(dependent, dict) else None
        if not isinstance(responses, list) or not all(isinstance(response, dict) for response in responses):
            raise InvalidParams(INVALID_RESPONSES)
        read = _read_shared if options.option == SHARED else _read_each
        params |= read(context, request, dependent, responses)
    return request._replace(message={**message, "params": params})  # type: ignore[typeddict-item]


def _read_shared(
    context: DialectContext, request: Request, dependent: Mapping[str, Any], responses: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the modern params with the answers to questions that share a state."""
    if "state" not in dependent:  # the answers match no question, so the round asks again
        return {}
    turn = _open(context, request, dependent["state"], SHARED)
    pairs = zip(turn.asked.values(), responses, strict=False)  # a missing answer is asked for again
    answers = {question.key: turn_state.response_result(response, question) for question, response in pairs}
    return {"inputResponses": _without_ping(answers), "requestState": turn.state}


def _read_each(
    context: DialectContext, request: Request, _dependent: Mapping[str, Any], responses: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the modern params with the answers to questions that each have a state."""
    request_states: set[str] = set()
    answers: dict[str, Any] = {}
    for response in responses:
        if "state" not in response:  # it answers no question, so the round asks again
            continue
        turn = _open(context, request, response["state"], EACH)
        (question,) = turn.asked.values()
        request_states.add(turn.state)
        answers[question.key] = turn_state.response_result(response, question)
    if not request_states:
        return {}
    if len(request_states) > 1:
        raise InvalidRequestState(reason="two_conversations")
    return {"inputResponses": _without_ping(answers), "requestState": request_states.pop()}


def _open(context: DialectContext, request: Request, state: object, option: int) -> TurnState:
    wire = f"{NAME}/{option}"
    return turn_state.open_turn_for(context, wire, _unpack(state), request.principal, request.address)


def _without_ping(answers: Mapping[str, Any]) -> dict[str, Any]:
    return {key: answer for key, answer in answers.items() if key != PING[0]}


def _pack(sealed: str, options: Options) -> str | dict[str, str]:
    return {SEALED: sealed} if options.has_objects else sealed


def _unpack(state: object) -> str:
    if isinstance(state, str):
        return state
    # "Clients MUST echo back the exact `state` value": an object with more members is not one that this server sent.
    if isinstance(state, dict) and state.keys() == {SEALED} and isinstance(state[SEALED], str):
        return str(state[SEALED])
    raise InvalidRequestState(reason="shape")


def _options(declared: Mapping[str, Any]) -> Options:
    option = declared.get("option", 0)
    if type(option) is not int or option not in (0, SHARED, EACH):
        raise InvalidParams(INVALID_OPTIONS)
    state_type = declared.get("state", "string")
    if state_type not in ("string", "object"):
        raise InvalidParams(INVALID_OPTIONS)
    return Options(option, has_objects=state_type == "object")


DIALECT = Dialect(answer, token=token, turn=continue_turn)
