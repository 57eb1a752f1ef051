"""A client's conversation with one function, round by round.

A round is one request and its response. A call that asks its user takes several:

    talk = Conversation(handler).call(city="Rome")   round 1: the function answers with a question, and a sealed state
    talk.accept(seat="12A")                          round 2: the same request, with the answer and the state
    talk.text                                        the text of the result
"""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from inspect import unwrap
from typing import Any, Self, cast

from mcp_functions.protocol.constants import APP_MIME_TYPE, EXTENSION_APPS, EXTENSION_TASKS, WORKER_SUFFIX
from mcp_functions.protocol.event_types import Event, Response
from mcp_functions.protocol.messages import Principal, value_at
from mcp_functions.protocol.wire_types import ClientCapabilities, Params
from mcp_functions_harness import environment
from mcp_functions_harness.api_gateway.events import Moment
from mcp_functions_harness.client.tasks import EVERYTHING
from mcp_functions_harness.testing import story, targets
from mcp_functions_harness.testing.caller import Caller, as_principal
from mcp_functions_harness.testing.containers import Context, answer_in_container, answer_in_process, find_variable
from mcp_functions_harness.testing.deployment import take_invocations
from mcp_functions_harness.testing.failures import Failures, captured_failures, ends_test
from mcp_functions_harness.testing.transcript import Transcript

# claude.ai declares this
WITH_APPS: ClientCapabilities = {"extensions": {EXTENSION_APPS: {"mimeTypes": [APP_MIME_TYPE]}}}
WITH_TASKS: ClientCapabilities = {**EVERYTHING, "extensions": {EXTENSION_TASKS: {}}}
WORKER_MS = 900_000  # in which a worker, the function that runs tasks, must end
MAX_ROUNDS_WITHOUT_QUESTION = 10  # the official clients give up after as many


class Conversation(Transcript):
    """A client's conversation with one function. Most methods return the conversation, so that calls can be chained.

    `accept`, `decline` and `cancel` raise an AssertionError if nothing was asked. `function` is the function's folder.
    """

    def __init__(  # noqa: PLR0913 - keywords, most of them rarely given
        self,
        handler: Callable[..., Any],
        *,
        function: str | None = None,
        principal: Principal | str | None = None,
        scopes: Sequence[str] = (),
        capabilities: ClientCapabilities | Mapping[str, Any] = EVERYTHING,
        moment: Callable[[], Moment] | None = None,
        fresh: bool = False,
    ) -> None:
        """Prepare a conversation; nothing is sent.

        Args:
            handler: the value that `serve` returned. Decorators around it (of Powertools, for example) do not run: call
                it with an event to test them.
            function: its folder; the first handler's name if left out.
            principal: the caller, as the authorizer of AuthMode `jwt` passes it on; not signed in, if left out.
            scopes: the scopes of the principal's access token.
            capabilities: the capabilities that the client declares; all, if left out.
            moment: returns each request's time and ids; if left out, the function's clock and new ids.
            fresh: whether a new Python process answers each round, so that only the state passes from one to the next.
                The process imports the handler from its module, which must have it as a variable: `handler = serve(…)`.

        Raises:
            ValueError: with `fresh`, the module has no such variable.
        """
        super().__init__()
        self._handler = unwrap(handler)
        self._ahead = 0.0  # the seconds by which the clock is ahead of the function's own
        self._answer_event = answer_in_process if fresh else answer_in_container
        if fresh:
            find_variable(self._handler)
        self.function = function or self._handler.handlers[0].name
        self._caller = Caller(as_principal(principal), tuple(scopes), cast("ClientCapabilities", capabilities))
        self._moment = moment or (lambda: Moment.at(self._now()))
        self._method = ""  # of the call; each round repeats it, and its params
        self._params: Params = {}
        self._inputs: Params = {}  # what the last round added to them: the answers and the state
        self._next_id = 1

    def __repr__(self) -> str:
        """Show the exception of the last round: pytest prints this beside a failed assertion."""
        raised = f", which raised {self.raised!r}" if self.raised else ""
        return f"<Conversation with {self.function}{raised}>"

    def call(self, name: str | None = None, /, **arguments: object) -> Self:
        """Call a tool or get a prompt: the named one, or the function's first.

        Args:
            name: the name of the tool or prompt.
            arguments: the arguments as JSON values, by the names that the client sends.

        Raises:
            ValueError: the function has no such tool or prompt.
        """
        handler = targets.find_called(self._handler.handlers, name)
        return self._begin(targets.METHODS[handler.kind], {"name": handler.name, "arguments": arguments})

    def get(self, name: str | None = None, /, **arguments: str) -> Self:
        """Get a prompt, as `call` does: the named one, or the function's first."""
        return self.call(name, **arguments)

    def read(self, uri: str) -> Self:
        """Read a resource."""
        return self._begin("resources/read", {"uri": uri})

    def complete(self, argument: str, typed: str = "", name: str | None = None, /, **filled_in: str) -> list[str]:
        """Complete an argument of a prompt or of a URI template, as a client does while its user types.

        Args:
            argument: the name of the argument.
            typed: what the user has typed so far.
            name: the name of the prompt or of the resource; the function's first that completes arguments, if left out.
            filled_in: the other arguments that the user has filled in.

        Returns:
            The values that the server suggests, the best first.

        Raises:
            ValueError: the function has no such prompt or template, or completes no arguments.
            AssertionError: the server refused; the text says why.
        """
        __tracebackhide__ = True
        handler = targets.find_completing(self._handler.handlers, name)
        params: Params = {"ref": targets.reference(handler), "argument": {"name": argument, "value": typed}}
        if filled_in:
            params["context"] = {"arguments": filled_in}
        completion = self._begin("completion/complete", params).result["completion"]
        return list(completion["values"])

    def accept(self, /, **answers: object) -> Self:
        """Fill in forms: `accept(original={"id": 7})`. A form with one field takes its value: `accept(agree=True)`."""
        __tracebackhide__ = True
        self.check_asked(answers)
        contents = {key: self._content_of(key, answer) for key, answer in answers.items()}
        return self.answer(**{key: {"action": "accept", "content": content} for key, content in contents.items()})

    def decline(self, *keys: str) -> Self:
        """Decline the named questions, or all of them."""
        __tracebackhide__ = True
        return self._refuse("decline", keys)

    def cancel(self, *keys: str) -> Self:
        """Dismiss the named questions, or all of them, without an answer."""
        __tracebackhide__ = True
        return self._refuse("cancel", keys)

    def answer(self, /, **responses: Mapping[str, Any]) -> Self:
        """Send the next round with any `inputResponses`, and the state as it was received.

        In a task, `tasks/update` sends the responses, and the conversation polls. If the host shows a form (MCP Apps),
        the responses go to the tool that the form calls.
        """
        answers: Any = responses
        if self.task_id:
            return self._request_task("tasks/update", {"inputResponses": answers}).poll()
        if self.form:
            return self.submit(self.form["tool"], state=self.form["state"], answers=answers)
        return self._send({"inputResponses": answers, "requestState": self.state})

    def submit(self, form_tool: str, /, **arguments: object) -> Self:
        """Call a tool that belongs to a form (`<tool>-form` or `<tool>-answer`), with a state and answers."""
        return self._request("tools/call", {"name": form_tool, "arguments": arguments})

    def go_on(self) -> Self:
        """Send rounds without answers while the function asks nothing and has not ended, as clients do.

        Raises:
            AssertionError: the function asked nothing in ten rounds; the official clients give up then.
        """
        __tracebackhide__ = True
        for _ in range(MAX_ROUNDS_WITHOUT_QUESTION):
            if self.done or self.asked:
                return self
            self.answer()
        raise AssertionError(
            f"the function ended {MAX_ROUNDS_WITHOUT_QUESTION} rounds without a question: clients give up"
        )

    def poll(self) -> Self:
        """Run the worker's invocations for this task that are due, and get the task (`tasks/get`)."""
        worker = f"{environment.STACK}_{self.function}{WORKER_SUFFIX}"
        raised_by_worker = None
        for event in take_invocations(worker, self.task_id):
            _response, failures = self._run(event, Context(worker, WORKER_MS))
            raised_by_worker = failures.last or raised_by_worker
        self._request_task("tasks/get", {})
        self.raised = raised_by_worker or self.raised
        return self

    def cancel_task(self) -> Self:
        """Cancel the task (`tasks/cancel`), and get it."""
        return self._request_task("tasks/cancel", {}).poll()

    def retry(self) -> Self:
        """Send the last round again, as a client does that did not receive the response."""
        return self._send(self._inputs)

    def tamper(self, change: Callable[[str], str] = lambda token: f"{token}A") -> Self:
        """Send the next round with a changed state; by default, with one more character."""
        return self._send({"inputResponses": {}, "requestState": change(self.state)})

    def as_(self, principal: Principal | str, *, scopes: Sequence[str] | None = None) -> Self:
        """Return a copy of the conversation, with its state, for another caller: `talk.as_("mallory").accept(…)`.

        Args:
            principal: the caller of the next rounds.
            scopes: the scopes of the caller's access token; those of the earlier one, if left out.

        Raises:
            ValueError: the conversation has no principal, and so no caller that another one could differ from.
        """
        if self._caller.principal is None:
            raise ValueError('begin as somebody: Conversation(handler, principal="alice")')
        other = copy.copy(self)
        other.rounds = list(self.rounds)
        kept = self._caller.scopes if scopes is None else tuple(scopes)
        caller = self._caller._replace(principal=as_principal(principal), scopes=kept)
        other._caller = caller  # noqa: SLF001 - it is of this class
        return other

    def later(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> Self:
        """Advance the clocks of the function and of API Gateway before the next round."""
        passed = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        self._ahead += passed.total_seconds()
        return self

    def upgrade(self, handler: Callable[..., Any]) -> Self:
        """Deploy another version of the function, which answers from the next round on."""
        self._handler = unwrap(handler)
        return self

    def _now(self) -> float:
        own_time: float = self._handler.now()
        return own_time + self._ahead

    def _refuse(self, action: str, keys: Sequence[str]) -> Self:
        __tracebackhide__ = True
        self.check_asked(keys)
        return self.answer(**{key: {"action": action} for key in keys or self.asked})

    def _content_of(self, key: str, answer: object) -> Mapping[str, object]:
        """Return the content of an answer; a value that is no mapping fills the first field of the form."""
        if isinstance(answer, Mapping):
            return answer
        fields = value_at(self.requests, key, "params", "requestedSchema", "properties") or [key]
        return {next(iter(fields)): answer}

    def _begin(self, method: str, params: Params) -> Self:
        self._method = method
        self._params = params
        return self._send({})

    def _send(self, inputs: Params) -> Self:
        self._inputs = inputs
        return self._request(self._method, {**self._params, **inputs})

    def _request_task(self, method: str, inputs: Params) -> Self:
        self._inputs = {}
        return self._request(method, {"taskId": self.task_id, **inputs})

    def _request(self, method: str, params: Params) -> Self:
        message = self._caller.message(self._next_id, method, params)
        self._next_id += 1
        event = self._caller.event(message, f"/mcp/{self.function}", self._moment(), self._now())
        as_lambda_reads_it: Event = json.loads(json.dumps(event))
        response, self._failures = self._run(as_lambda_reads_it, Context(f"{environment.STACK}_{self.function}"))
        self.raised = self._failures.last
        if self.raised and ends_test(self.raised):
            raise self.raised  # `pytest.fail()` ends the test also where a function calls it
        self.rounds.append((event, response))
        story.note(self)
        return self

    def _run(self, event: Event, context: Context) -> tuple[Response, Failures]:
        """Let the function answer an event. Return its response, and what it logged and raised."""
        with environment.applied(self._caller.environment()), captured_failures() as failures:
            return self._answer_event(self._handler, event, context, ahead=self._ahead), failures
