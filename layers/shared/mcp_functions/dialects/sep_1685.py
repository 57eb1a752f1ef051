"""SEP-1685, `state` beside the server's request: the client returns it with its response, and no server stores it.

The proposal has three formats, and a client chooses one with `option`, among its experimental capabilities:

    no option   the server sends one request with a `state`; the client's response has it too
    option 1    `dependent_requests` holds all requests of a round, with one state
    option 2    `dependent_requests` holds all requests of a round, each with its own state

A round is one run of the handler of a call; here it ends with questions. A turn is what the client must answer next.
A state is a token, or an object with it if the client declares `"state": "object"`. `turn_state` seals the token: it
holds the `requestState` of the released revision and the turn's questions, and without an option also the call.

Without an option, the id of the server's request is the same token. So a response that lacks the `state` still has it,
because JSON-RPC requires the id. The proposal's server would find the state by id in a database. This server has none.
The quotations in this file are from SEP-1685.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.dialects import turn_state
from mcp_functions.dialects.dialect import Dialect, is_response, is_unfinished, stream_event
from mcp_functions.dialects.turn_state import TurnQuestion, TurnState
from mcp_functions.protocol.errors import InvalidParams, InvalidRequestState, StateTooLarge
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import ResponseBody

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_functions.dialects.dialect import AnswerModern, DialectContext
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.exchange import Continuation
    from mcp_functions.protocol.messages import AnyResult, Request, Result
    from mcp_functions.protocol.wire_types import JSONValue

NAME = "sep-1685"
# The formats, by the names under which their tokens are sealed: a token of one does not open as another.
ONE_REQUEST = NAME
ONE_STATE = f"{NAME}/1"
STATE_EACH = f"{NAME}/2"
FORMATS = {0: ONE_REQUEST, 1: ONE_STATE, 2: STATE_EACH}  # by the client's option; 0 means none
SEALED = "sealed"  # the only member of a state that is an object
# A round that ran out of time has no question. A ping in its place carries the state. No handler asked it, so its
# result is no answer.
PING: Mapping[str, Any] = {"ping": {"method": "ping"}}
INVALID_OPTIONS = 'experimental["sep-1685"] may hold "option": 1 or 2, and "state": "string" or "object"'
INVALID_RESPONSES = (
    'dependent_responses must be {"responses": [{"result": …}, …]}, with the "state" that the round came with'
)


class Options(NamedTuple):
    """The client's choices."""

    format: str  # ONE_REQUEST, ONE_STATE or STATE_EACH
    state_is_object: bool  # False: a string


def answer(
    context: DialectContext, answer_modern: AnswerModern, request: Request, declared: Mapping[str, Any]
) -> AnyResult:
    """Answer a request; a call that asks its client becomes a turn.

    Raises:
        InvalidParams: the client's options or its answers are malformed.
        InvalidRequestState: a state is invalid.
    """
    options = _options(declared)
    if options.format != ONE_REQUEST:
        request = _with_answers(context, request, options.format)
    result = answer_modern(request)
    if not is_unfinished(result, request):
        return result  # finished, or an error: nothing to translate
    try:
        if options.format == ONE_REQUEST:
            return _write_first_question(context, request, result, options)
        return _write_round(context, request, result, options)
    except StateTooLarge as error:
        return turn_state.too_large(context, request, error)


def read_token(_http: HttpRequest, body: object) -> str | None:
    """Return the token in a response: its state, or its id if it has no state.

    Raises:
        InvalidRequestState: the state is not one that this server has sent.
    """
    if not is_response(body):
        return None
    id_ = body["id"]
    if not isinstance(id_, str):
        return None
    return _read_state(body["state"]) if "state" in body else id_


def continue_turn(context: DialectContext, http: HttpRequest, body: JSONValue) -> Continuation:
    """Return the call that a response continues.

    Raises:
        InvalidRequestState: the state is invalid, or belongs to another request.
    """
    token = read_token(http, body)
    if token is None or body["id"] != token:  # the id of the server's request and its state are the same token
        raise InvalidRequestState(reason="another_request")
    turn = turn_state.open_turn(context, ONE_REQUEST, token, http)
    (question,) = turn.asked.values()  # this format asks one question in each turn
    result = turn_state.response_result(body, question)
    answers = {} if question.method == "ping" else {question.key: result}
    return turn_state.repeat_call(http, turn, answers)


def _write_first_question(context: DialectContext, request: Request, result: Result, options: Options) -> Result:
    """Write the first question as a request of the server, and end the stream.

    Each response is a separate POST, and no server joins two of them. So the other questions follow in later turns.
    """
    questions: Mapping[str, Any] = result.result["inputRequests"] or PING
    key, question = next(iter(questions.items()))
    token = _seal_state(context, request, result, options, {key: question})
    # "The `state` field is a top-level field of the JSON-RPC message rather than a sub-field of `params`"
    message = {"jsonrpc": "2.0", "id": token, "state": _write_state(token, options), **question}
    return result._replace(body=_stream(result, message))


def _write_round(context: DialectContext, request: Request, result: Result, options: Options) -> Result:
    """Write all questions of a round as one message, with one state or with a state for each question."""
    questions: Mapping[str, Any] = result.result["inputRequests"]
    dependent: dict[str, Any]
    if options.format == ONE_STATE:
        token = _seal_state(context, request, result, options, questions)
        dependent = {"state": _write_state(token, options), "requests": [dict(each) for each in questions.values()]}
    else:
        dependent = {"requests": []}
        for key, question in (questions or PING).items():
            token = _seal_state(context, request, result, options, {key: question})
            dependent["requests"].append({"state": _write_state(token, options), **question})
    message = {"jsonrpc": "2.0", "id": request.message["id"], "dependent_requests": dependent}
    if result.notifications:
        return result._replace(body=_stream(result, message))
    return result._replace(body=ResponseBody(dumps(message), is_stream=False))


def _stream(result: Result, last: Mapping[str, Any]) -> ResponseBody:
    """Return an event stream with the notifications of a result, and then one message."""
    events = [stream_event(message) for message in (*result.notifications, last)]
    return ResponseBody("".join(events), is_stream=True)


def _seal_state(
    context: DialectContext, request: Request, result: Result, options: Options, questions: Mapping[str, Any]
) -> str:
    """Return the token for some questions of a round."""
    asked: dict[str, TurnQuestion] = {}
    for number, (key, question) in enumerate(questions.items()):
        asked[str(number)] = TurnQuestion(key, question["method"])
    # With an option, the client repeats its call. Without one, the token holds the call.
    call = turn_state.call_parts(request) if options.format == ONE_REQUEST else {}
    turn = TurnState(result.result["requestState"], asked, call)
    return turn_state.seal_turn(context, options.format, request, turn)


def _with_answers(context: DialectContext, request: Request, format_name: str) -> Request:
    """Return a call with the answers of `dependent_responses`, a member beside the params of a repeated call."""
    message: dict[str, Any] = dict(request.message)
    dependent = message.pop("dependent_responses", None)
    params = {name: value for name, value in request.params.items() if name not in ("inputResponses", "requestState")}
    if dependent is not None:
        params |= _read_answers(context, request, dependent, format_name)
    return request._replace(message={**message, "params": params})  # type: ignore[typeddict-item]


def _read_answers(context: DialectContext, request: Request, dependent: JSONValue, format_name: str) -> dict[str, Any]:
    """Return the answers and the state as params of the released revision; none of them if the round must ask again."""
    responses = dependent.get("responses") if isinstance(dependent, dict) else None
    if not isinstance(responses, list) or not all(isinstance(response, dict) for response in responses):
        raise InvalidParams(INVALID_RESPONSES)
    # The objects that hold a state, each with the responses that belong to it.
    groups = [(dependent, responses)]
    if format_name == STATE_EACH:
        groups = [(response, [response]) for response in responses]
    request_states: set[str] = set()
    answers: dict[str, Any] = {}
    for holder, answered in groups:
        # "servers that need state can detect its absence in the response and fall back gracefully": without a
        # state, nothing tells which questions these responses answer. So the round asks again.
        if "state" not in holder:
            continue
        token = _read_state(holder["state"])
        turn = turn_state.open_turn_for(context, format_name, token, request.principal, request.address)
        request_states.add(turn.state)
        for question, response in zip(turn.asked.values(), answered, strict=False):  # a missing answer is asked again
            result = turn_state.response_result(response, question)
            if question.method != "ping":
                answers[question.key] = result
    if not request_states:
        return {}
    if len(request_states) > 1:
        raise InvalidRequestState(reason="two_conversations")
    return {"inputResponses": answers, "requestState": request_states.pop()}


def _write_state(token: str, options: Options) -> str | dict[str, str]:
    return {SEALED: token} if options.state_is_object else token


def _read_state(state: object) -> str:
    """Return the token in a state.

    "Clients MUST echo back the exact `state` value". So an object with more members is not one that this
    server sent.
    """
    token = state[SEALED] if isinstance(state, dict) and state.keys() == {SEALED} else state
    if not isinstance(token, str):
        raise InvalidRequestState(reason="shape")
    return token


def _options(declared: Mapping[str, Any]) -> Options:
    option = declared.get("option", 0)
    if type(option) is not int or option not in FORMATS:
        raise InvalidParams(INVALID_OPTIONS)
    state_type = declared.get("state", "string")
    if state_type not in ("string", "object"):
        raise InvalidParams(INVALID_OPTIONS)
    return Options(FORMATS[option], state_is_object=state_type == "object")


DIALECT = Dialect(NAME, answer, read_token=read_token, continue_turn=continue_turn)
