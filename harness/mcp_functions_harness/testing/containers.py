"""Runs the function of a conversation: in a container of this process, or in a new process for each event.

A container is what Lambda calls an execution environment: it answers one event after another, and may keep values
between them. Here it is a copy of the function, in this process. A new process proves that nothing depends on values
that were kept.
"""

import asyncio
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from inspect import unwrap
from types import FunctionType

from mcp_functions.handlers import event_loop
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.event_types import Event, Response

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


def answer_in_container(handler: LambdaFunction, event: Event, context: Context, *, ahead: float) -> Response:
    """Answer one event in a container, whose clock is some seconds ahead of the function's own.

    A container reads the environment variables only once, at its first event. So each set of variables has its own.
    """
    variables = os.environ.items()
    environment = frozenset((name, value) for name, value in variables if name.startswith(("MCP_", "AWS_")))
    containers: dict[object, LambdaFunction] = vars(handler).setdefault("_test_containers", {})
    container = containers.get((environment, ahead))
    if container is None:
        # A copy, because the test may also call the function itself, with other variables.
        container = containers[environment, ahead] = handler.fresh(now=lambda: handler.now() + ahead)
    if event_loop.is_current() or not _is_loop_running():
        return container(event, context)
    # An async test: on Lambda no event loop runs, and so none in another thread.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, container, event, context).result()


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def answer_in_process(handler: LambdaFunction, event: Event, context: Context, *, ahead: float) -> Response:
    """Answer one event in a new Python process, so that only the state passes from one event to the next.

    Raises:
        RuntimeError: the process failed; it has written the reason to stderr.
    """
    variable = find_variable(handler)
    invocation = {
        **variable,
        "event": event,
        "name": context.function_name,
        "remaining": context.remaining_ms,
        "path": sys.path,
        "ahead": ahead,
    }
    process = subprocess.run(
        [sys.executable, "-m", "mcp_functions_harness.testing"],
        input=json.dumps(invocation),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=PROCESS_SECONDS,
    )
    if process.returncode:
        raise RuntimeError(f"a fresh process of {variable['file']} ended with {process.returncode}: see its stderr")
    response: Response = json.loads(process.stdout)
    return response


def find_variable(handler: LambdaFunction) -> dict[str, str]:
    """Return the module, the file and the variable of what `serve` returned, by the modules of its tools.

    Raises:
        ValueError: no module has the handler as a variable.
    """
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
