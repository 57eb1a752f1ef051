"""How a function under test runs: in containers of this process, or in a new process for each event.

A container is what Lambda calls an execution environment: it answers one event after another, and may keep values
between them. Here it is a copy of the function, in this process. With `fresh=True` each event gets a new Python process
instead, which proves that nothing depends on values that were kept.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from inspect import unwrap
from types import FunctionType
from typing import Any, TypeAlias

from mcp_functions.handlers import event_loop
from mcp_functions.http.gateway import LambdaFunction

Event: TypeAlias = dict[str, Any]

PROCESS_SECONDS = 60  # the time in which a new process must answer its event


@dataclass
class Context:
    """Lambda's context object, with the members that the toolkit and Powertools read."""

    function_name: str = "local_function"
    remaining_ms: int = 29_000
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = ""
    aws_request_id: str = ""

    def get_remaining_time_in_millis(self) -> int:
        """Return the time until Lambda stops the function."""
        return self.remaining_ms


class TimedFunction:
    """A function with a clock, which a test may advance. The object does not change: `later` returns a new one."""

    def __init__(self, handler: Callable[..., Any], *, fresh: bool, ahead: float = 0.0) -> None:
        """Prepare to answer events.

        Args:
            handler: the value that `serve` returned, perhaps with decorators around it.
            fresh: whether each event gets a new Python process.
            ahead: the seconds by which the clock is ahead of the function's own.
        """
        self.handler: LambdaFunction = unwrap(handler)
        self._fresh = fresh
        self._ahead = ahead
        self._answer: Callable[[Event, Context], Event]
        if fresh:
            self._answer = NewProcesses(self.handler, ahead)
        elif ahead:
            self._answer = Containers(self.handler, self.now)
        else:  # conversations with an unchanged clock share the containers, which the handler keeps
            self._answer = vars(self.handler).setdefault("_test_containers", Containers(self.handler))

    def __call__(self, event: Event, context: Context) -> Event:
        """Answer one event."""
        return self._answer(event, context)

    def now(self) -> float:
        """Return unix seconds."""
        return self.handler.now() + self._ahead

    def later(self, seconds: float) -> "TimedFunction":
        """Return the function with an advanced clock."""
        return TimedFunction(self.handler, fresh=self._fresh, ahead=self._ahead + seconds)

    def replaced(self, handler: Callable[..., Any]) -> "TimedFunction":
        """Return another version of the function, with the same clock."""
        return TimedFunction(handler, fresh=self._fresh, ahead=self._ahead)


class Containers:
    """Containers of one function in this process: one for each set of environment variables.

    A container reads the variables only once, at its first event.
    """

    def __init__(self, handler: LambdaFunction, now: Callable[[], float] | None = None) -> None:
        """Start without containers; `now` is their clock, the function's own if left out."""
        self._handler = handler
        self._now = now
        self._containers: dict[object, LambdaFunction] = {}

    def __call__(self, event: Event, context: Context) -> Event:
        """Answer one event."""
        variables = os.environ.items()
        environment = frozenset((name, value) for name, value in variables if name.startswith(("MCP_", "AWS_")))
        if environment not in self._containers:
            # A copy, because the test may also call the function itself, with other variables.
            self._containers[environment] = self._handler.fresh(now=self._now)
        return _without_event_loop(partial(self._containers[environment], event, context))


class NewProcesses:
    """Answers each event in a new Python process, so that only the state passes from one event to the next."""

    def __init__(self, handler: LambdaFunction, ahead: float) -> None:
        """Find the handler's module.

        Args:
            handler: the function.
            ahead: the seconds by which the clock of its processes is ahead.

        Raises:
            ValueError: no module has the handler as a variable.
        """
        self.place = _find_variable(handler)
        self._ahead = ahead

    def __call__(self, event: Event, context: Context) -> Event:
        """Answer one event.

        Raises:
            RuntimeError: the process failed; it has written the reason to stderr.
        """
        invocation = {
            **self.place,
            "event": event,
            "name": context.function_name,
            "remaining": context.remaining_ms,
            "path": sys.path,
            "ahead": self._ahead,
        }
        process = subprocess.run(
            [sys.executable, "-m", "mcp_functions.testing"],
            input=json.dumps(invocation),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PROCESS_SECONDS,
        )
        if process.returncode:
            message = f"a fresh process of {self.place['file']} ended with {process.returncode}: see its stderr"
            raise RuntimeError(message)
        response: Event = json.loads(process.stdout)
        return response


def _without_event_loop(answer: Callable[[], Event]) -> Event:
    """Answer where no event loop runs, as on Lambda. In an async test, that is another thread."""
    if event_loop.is_current():
        # The toolkit's own loop runs an async handler, which makes this call. With another thread, that loop would wait
        # for itself.
        return answer()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return answer()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, answer).result()


def _find_variable(handler: LambdaFunction) -> dict[str, str]:
    """Return the module, the file and the variable of what `serve` returned, by the modules of its tools."""
    for tool in handler.handlers:
        module = sys.modules.get(tool.__module__)
        if module is None or module.__file__ is None:
            continue
        for variable, value in vars(module).items():
            undecorated = unwrap(value) if isinstance(value, FunctionType) else value
            if undecorated is handler:
                return {"module": module.__name__, "file": module.__file__, "variable": variable}
    message = (
        "fresh=True needs `handler = serve(…)` in the module of its function: a fresh process imports it from there"
    )
    raise ValueError(message)
