"""SEP-1685: questions to a client have a `state`, which the client returns with its responses. No server stores it.

A client chooses one of three formats with `option`, among its experimental capabilities. In the examples, S is a state.

No option: one question at a time, as a request of the server. The client responds to it.

    server   {"id": S, "state": S, "method": "elicitation/create", "params": {…}}
    client   {"id": S, "state": S, "result": {…}}

Option 1: all questions in one message, with one state. The client repeats its call, with the responses.

    server   {"id": 7, "dependent_requests": {"state": S, "requests": [{"method": …}, …]}}
    client   {"id": 7, "method": "tools/call", …, "dependent_responses": {"state": S, "responses": [{"result": …}, …]}}

Option 2: the same, but each question has its own state.

    server   {"id": 7, "dependent_requests": {"requests": [{"state": S, "method": …}, …]}}
    client   {"id": 7, "method": "tools/call", …, "dependent_responses": {"responses": [{"state": S, "result": …}, …]}}

A state is a token, that is a sealed text: "tool.ks1.…". A client may ask for objects: {"sealed": "tool.ks1.…"}. The
token holds the questions and the `requestState` of the released revision; without an option also the call.

Without an option, the id of the server's request is the token, too. So a response that lacks its state still has it,
because JSON-RPC requires the id. The quotations in this file are from SEP-1685.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions.dialects import turn_state
from mcp_functions.dialects.dialect import Dialect, declaration, is_response, is_unfinished, stream_event
from mcp_functions.dialects.turn_state import Turn, TurnQuestion
from mcp_functions.http import identity
from mcp_functions.protocol.errors import InvalidParams, InvalidRequestState
from mcp_functions.protocol.json_writer import dumps
from mcp_functions.protocol.messages import ResponseBody

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_functions.dialects.dialect import DialectContext
    from mcp_functions.http.events import HttpRequest
    from mcp_functions.http.exchange import Continuation
    from mcp_functions.protocol.messages import AnyResult, Request, Result
    from mcp_functions.protocol.wire_types import InputRequests, InputResponses, JSONRPCMessage, JSONValue, Params

NAME = "sep-1685"
# The formats, by the names under which their tokens are sealed: a token of one does not open as another.
ONE_REQUEST = NAME
ONE_STATE = f"{NAME}/1"
STATE_EACH = f"{NAME}/2"
FORMATS = {0: ONE_REQUEST, 1: ONE_STATE, 2: STATE_EACH}  # by the client's option; 0 means none
SEALED = "sealed"  # the only member of a state that is an object
# A call whose time was up has no question. A ping is sent in its place, to carry the state.
PING: InputRequests = {"ping": {"method": "ping"}}


class Options(NamedTuple):
    """The client's choices."""

    format: str  # ONE_REQUEST, ONE_STATE or STATE_EACH
    state_is_object: bool  # True: {"sealed": token}; False: the token


class StateBesideRequest(Dialect):
    """The dialect `sep-1685`."""

    name = NAME

    def answer(self, context: DialectContext, request: Request) -> AnyResult:
        """Answer a request; the questions of a call are written in the client's format.

        Raises:
            InvalidParams: the client's options or its responses are malformed.
            InvalidRequestState: a state is invalid.
            StateTooLarge: a token would be too large.
        """
        options = _read_options(request)
        if options.format != ONE_REQUEST:
            request = _with_answers(context, request, options.format)
        result = context.answer_current(request)
        if not is_unfinished(result, request):
            return result  # finished, or an error: nothing to translate
        call = UnfinishedCall(context, request, result, options)
        return call.with_first_question() if options.format == ONE_REQUEST else call.with_all_questions()

    def read_token(self, http: HttpRequest, body: JSONValue) -> str | None:  # noqa: ARG002
        """Return the token in a response, its state or its id; InvalidRequestState if the state is malformed."""
        if not is_response(body) or not isinstance(body["id"], str):
            return None
        if "state" in body:
            return _read_state(body["state"])
        return body["id"]

    def continue_call(self, context: DialectContext, http: HttpRequest, body: JSONValue, token: str) -> Continuation:
        """Return the call that a response continues; InvalidRequestState if its state is not of this request."""
        if body["id"] != token:
            raise InvalidRequestState(reason="another_request")
        principal = identity.admit(http, context.settings, context.now()).principal
        turn = turn_state.open_turn(context, ONE_REQUEST, token, principal, http.address)
        return turn_state.repeat_call(http, turn, _read_answers(turn, [body]))


class UnfinishedCall(NamedTuple):
    """A call that needs another round, and the format in which its client wants the questions."""

    context: DialectContext
    request: Request
    result: Result
    options: Options

    def with_first_question(self) -> Result:
        """Write the first question as a request of the server, and end the stream.

        Each response is a separate POST, and no server joins two of them. So the other questions follow one by one.
        """
        questions: InputRequests = self.result.result["inputRequests"] or PING
        key, question = next(iter(questions.items()))
        token = self._seal({key: question})
        # "The `state` field is a top-level field of the JSON-RPC message rather than a sub-field of `params`"
        message = {"jsonrpc": "2.0", "id": token, "state": self._write_state(token), **question}
        return self.result._replace(body=self._stream(message))

    def with_all_questions(self) -> Result:
        """Write the questions as one message, with one state or with a state for each question."""
        questions: InputRequests = self.result.result["inputRequests"]
        dependent: dict[str, object] = {}
        if self.options.format == ONE_STATE:
            dependent["state"] = self._write_state(self._seal(questions))
            dependent["requests"] = list(questions.values())
        else:
            dependent["requests"] = [
                {"state": self._write_state(self._seal({key: question})), **question}
                for key, question in (questions or PING).items()
            ]
        message = {"jsonrpc": "2.0", "id": self.request.message["id"], "dependent_requests": dependent}
        if self.result.notifications:
            return self.result._replace(body=self._stream(message))
        return self.result._replace(body=ResponseBody(dumps(message), is_stream=False))

    def _stream(self, last: object) -> ResponseBody:
        """Return an event stream with the notifications of the result, and then one message."""
        return ResponseBody("".join(map(stream_event, (*self.result.notifications, last))), is_stream=True)

    def _seal(self, questions: InputRequests) -> str:
        """Return the token for some questions of the call."""
        asked: dict[str, TurnQuestion] = {}
        for number, (key, question) in enumerate(questions.items()):
            asked[str(number)] = TurnQuestion(key, question["method"])
        # With an option, the client repeats its call. Without one, the token holds the call.
        call = turn_state.call_of(self.request) if self.options.format == ONE_REQUEST else {}
        turn = Turn(self.result.result["requestState"], asked, call)
        return turn_state.seal_turn(self.context, self.options.format, self.request, turn)

    def _write_state(self, token: str) -> str | dict[str, str]:
        return {SEALED: token} if self.options.state_is_object else token


def _with_answers(context: DialectContext, request: Request, format_name: str) -> Request:
    """Return a repeated call with the answers of its `dependent_responses`, as params of the released revision."""
    message: dict[str, Any] = dict(request.message)
    dependent = message.pop("dependent_responses", None)
    params = {name: value for name, value in request.params.items() if name not in ("inputResponses", "requestState")}
    if dependent is not None:
        params |= _read_dependent(context, request, dependent, format_name)
    return request._replace(message={**message, "params": params})  # type: ignore[typeddict-item]


def _read_dependent(context: DialectContext, request: Request, dependent: JSONValue, format_name: str) -> Params:
    """Return the params `inputResponses` and `requestState`; {} if no state came back.

    "servers that need state can detect its absence in the response and fall back gracefully": without a state, the
    server does not know which questions the responses answer. The call begins again, and so it asks them again.
    """
    responses = dependent.get("responses") if isinstance(dependent, dict) else None
    if not isinstance(responses, list) or not all(isinstance(response, dict) for response in responses):
        expected = '{"responses": [{"result": …}, …]}, with the "state" that the round came with'
        raise InvalidParams(message=f"dependent_responses must be {expected}")
    # For each object that may have a state: the responses to which the state belongs.
    if format_name == ONE_STATE:
        holders = [(dependent, responses)]
    else:
        holders = [(response, [response]) for response in responses]
    request_states: set[str] = set()
    answers: InputResponses = {}
    for holder, belonging in holders:
        if "state" not in holder:
            continue
        token = _read_state(holder["state"])
        turn = turn_state.open_turn(context, format_name, token, request.principal, request.address)
        request_states.add(turn.request_state)
        answers |= _read_answers(turn, belonging)
    if not request_states:
        return {}
    if len(request_states) > 1:
        raise InvalidRequestState(reason="two_conversations")
    return {"inputResponses": answers, "requestState": request_states.pop()}


def _read_answers(turn: Turn, responses: Iterable[JSONRPCMessage]) -> InputResponses:
    """Return the answers to a turn's questions by key. The client gives the responses in the order of the questions."""
    answers: InputResponses = {}
    # A question without an answer is asked again.
    for question, response in zip(turn.asked.values(), responses, strict=False):
        result = turn_state.response_result(response, question)
        if question.method != "ping":  # no handler asked the ping
            answers[question.key] = result
    return answers


def _read_state(state: object) -> str:
    """Return the token in a state.

    "Clients MUST echo back the exact `state` value": an object with other members is refused.
    """
    token = state
    if isinstance(state, dict) and state.keys() == {SEALED}:
        token = state[SEALED]
    if not isinstance(token, str):
        raise InvalidRequestState(reason="shape")
    return token


def _read_options(request: Request) -> Options:
    declared = declaration(request, NAME) or {}
    option = declared.get("option", 0)
    state_type = declared.get("state", "string")
    if type(option) is not int or option not in FORMATS or state_type not in ("string", "object"):
        raise InvalidParams(
            message='experimental["sep-1685"] may hold "option": 1 or 2, and "state": "string" or "object"'
        )
    return Options(FORMATS[option], state_is_object=state_type == "object")


DIALECT = StateBesideRequest()
