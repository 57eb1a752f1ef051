"""One modern request on behalf of a legacy client, and what came of it, wherever the handler is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_functions import observability
from mcp_functions.http import gateway
from mcp_functions.legacy import lifting
from mcp_functions.protocol.errors import InsufficientScope, InternalError, McpError, Unauthorized, is_ctrl_c
from mcp_functions.protocol.messages import ForwardedResponse, Identity, Request, Result
from mcp_functions.seal.request_state import payer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.http.events import HttpRequest
    from mcp_functions.legacy.sessions import Session
    from mcp_functions.protocol.wire_types import JSONRPCRequest, RequestId

AGAIN_SECONDS = 15.0  # that must be left for a call that ended without a question to be sent again at once
SPARE_SECONDS = 1.5  # of the time that the gateway waits: to keep what came of it, and to write it
OK, UNAUTHORIZED, FORBIDDEN = 200, 401, 403


class Exchange(NamedTuple):
    """One HTTP request of a legacy client.

    Attributes:
        caller: as the gateway's authorizer vouches.
        principal: digest of the caller, None on a server that knows nobody.
        deadline: unix seconds at which nobody waits any longer.
        ends: unix seconds at which Lambda ends this function.

    """

    http: HttpRequest
    event: Mapping[str, Any]
    caller: Identity
    principal: str | None
    revision: str
    session: Session | None
    deadline: float
    ends: float

    @property
    def payer(self) -> str:
        """Who is charged if KMS has to be asked."""
        return payer(self.caller.principal, self.http.address)


class Call(NamedTuple):
    """One call of a client, between its rounds.

    Attributes:
        id: of the client's request.
        method: one of `CALLS`.
        params: as `lifting.params` took them.
        state: that the next round must bring.

    """

    id: RequestId
    method: str
    params: Mapping[str, Any]
    state: str | None = None


class Outcome(NamedTuple):
    """What came of one modern request: a result, or an error in JSON-RPC's own words."""

    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    notifications: tuple[Mapping[str, Any], ...] = ()
    passed: Mapping[str, Any] | None = None  # an HTTP response about the caller's token

    @property
    def asks(self) -> Mapping[str, Any]:
        """The questions that it ended with."""
        result = self.result or {}
        questions: Mapping[str, Any] = result.get("inputRequests", {}) if self._goes_on else {}
        return questions

    @property
    def sheds(self) -> bool:
        """Whether it ended without a question, to be sent again."""
        return self._goes_on and not self.asks

    @property
    def state(self) -> str | None:
        """What the next round must bring."""
        state: str | None = (self.result or {}).get("requestState")
        return state

    @property
    def _goes_on(self) -> bool:
        return (self.result or {}).get("resultType") == "input_required"


class Runner:
    """Runs modern requests."""

    def __init__(
        self,
        answer: Callable[[Request], Result | ForwardedResponse],
        offered: Mapping[str, Any],
        now: Callable[[], float],
        *,
        forwards: bool = True,
    ) -> None:
        """Take what answers them, the catalog, the clock (unix seconds), and whether the answerer reads the event."""
        self._answer, self._offered, self._now, self._forwards = answer, offered, now, forwards

    def call(
        self,
        exchange: Exchange,
        call: Call,
        declared: Mapping[str, Any],
        answers: Mapping[str, Any] | None = None,
        *,
        challenging: bool = False,
    ) -> tuple[Call, Outcome]:
        """Run a call as far as it comes in this exchange.

        Args:
            exchange: that it belongs to.
            call: as it stands.
            declared: what may be asked of the client now.
            answers: to the questions of its last round.
            challenging: as `run` says.

        Returns:
            The call as it stands then, and what came of it.

        """
        said: tuple[Mapping[str, Any], ...] = ()
        while True:
            state = {"requestState": call.state} if call.state else {}
            responses = {"inputResponses": dict(answers)} if answers is not None else {}
            params = {**call.params, **state, **responses}
            outcome = self.run(exchange, call.id, call.method, params, declared, challenging=challenging)
            said += outcome.notifications
            outcome, call, answers = outcome._replace(notifications=said), call._replace(state=outcome.state), None
            if not outcome.sheds or exchange.deadline - self._now() < AGAIN_SECONDS:
                return call, outcome

    def run(  # noqa: PLR0913 - one request of one client
        self,
        exchange: Exchange,
        id_: RequestId,
        method: str,
        params: Mapping[str, Any],
        declared: Mapping[str, Any],
        *,
        challenging: bool = False,
    ) -> Outcome:
        """Run one request.

        Args:
            exchange: that it belongs to.
            id_: of the client's request.
            method: of it.
            params: as `lifting.params` took them, and what a retry adds.
            declared: what may be asked of the client now.
            challenging: whether what is wrong with the caller's token is for HTTP to say.

        Raises:
            Unauthorized, InsufficientScope: if `challenging`.

        """
        sent = lifting.message(id_, method, params, exchange.session, declared, revision=exchange.revision)
        written = lifting.repeated(sent, self._offered, exchange.http.headers)
        request = Request(
            message=sent,
            headers=written,
            principal=exchange.caller.principal,
            address=exchange.http.address,
            deadline=exchange.deadline - SPARE_SECONDS,
            event=self._event(exchange, sent, written),
            scopes=exchange.caller.scopes,
            ends=exchange.ends,
        )
        try:
            return _noted(_read(self._answer(request), challenging=challenging))
        except (Unauthorized, InsufficientScope):
            if challenging:
                raise
            return Outcome(error={"code": InsufficientScope.code, "message": InsufficientScope.sentence})
        except McpError as error:
            gateway.note_error(observability.current(), error)
            return Outcome(error={"code": error.code, "message": error.message, "data": error.data})
        except BaseException as error:  # what raises is an error of this request, and the client must hear so
            if is_ctrl_c(error):
                raise
            gateway.note_crash(observability.current(), error)
            return Outcome(error={"code": InternalError.code, "message": InternalError.sentence})

    def _event(self, exchange: Exchange, sent: JSONRPCRequest, written: Mapping[str, str]) -> Mapping[str, Any]:
        """Write the event only where it is forwarded: it holds all of the request once more."""
        if not self._forwards:
            return exchange.event
        return lifting.event(exchange.event, sent, written, spare_ms=int(SPARE_SECONDS * 1000))


def _noted(outcome: Outcome) -> Outcome:
    notes = observability.current()
    if outcome.asks:
        notes.conclude("input_required")
    elif outcome.sheds:
        notes.conclude("shed")
    elif outcome.error is not None:
        notes.conclude("refused", "function")
        notes.code = outcome.error.get("code")
    else:
        notes.conclude("complete")
        notes.tool_error = (outcome.result or {}).get("isError") is True
    return outcome


def _read(answer: Result | ForwardedResponse, *, challenging: bool) -> Outcome:
    if isinstance(answer, Result):
        return Outcome(answer.result, notifications=answer.notifications)
    response = answer.response
    if challenging and response["statusCode"] in (UNAUTHORIZED, FORBIDDEN):
        return Outcome(passed=response)
    try:
        *before, last = _messages(response)
        return Outcome(last.get("result"), last.get("error"), tuple(before)) if "method" not in last else _broken()
    except (ValueError, AttributeError):
        return _broken()


def _messages(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Take the messages out of a function's response, be it JSON or a stream."""
    body: str = response["body"]
    if not body.startswith("event:"):
        return [json.loads(body)]
    return [json.loads(line.removeprefix("data: ")) for line in body.split("\n") if line.startswith("data: ")]


def _broken() -> Outcome:
    return Outcome(error={"code": InternalError.code, "message": InternalError.sentence})
