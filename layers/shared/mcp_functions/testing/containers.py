"""Where a function runs in a test: in a deployment, in a container of this process, or in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from inspect import unwrap
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from mcp_functions.handlers import event_loop
from mcp_functions.local import environment
from mcp_functions.local.doubles import dynamodb, keyfile, s3
from mcp_functions.local.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions.local.loopback import HttpResponse, Loopback, json_response
from mcp_functions.testing.dynamodb import MemoryTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp_functions.http.gateway import LambdaFunction
    from mcp_functions.local.loopback import HttpRequest
    from mcp_functions.store import Bucket
    from mcp_functions.store.dynamodb import Call

SECONDS = 60  # for a process to answer one event
MAX_ORDER = 64 * 1024
INVOKED = re.compile(r"/2015-03-31/functions/([^/?]+)/invocations")

summoned: deque[tuple[str, bytes]] = deque()  # workers that were called and have not come yet: name, order


@contextmanager
def deployed(table: Call | None = None, bucket: Bucket | None = None, /, **changes: str | None) -> Iterator[None]:
    """Surround functions with what a deployment gives them: the template's variables, a KMS and a table on loopback.

    Deployments may follow each other, or stand inside each other: states of one are not states of another.

    Args:
        table: a `MemoryTable` whose weather the test decides, or whatever else is called as DynamoDB is.
        bucket: keeps what does not fit into an item, if MCP_BLOBS is among the changes; moto's, if left out.
        changes: variables that should be different, `MCP_AUTH_MODE="jwt"`; None unsets one.

    """
    with ExitStack() as stack:
        kms = stack.enter_context(Loopback(max_body=MAX_REQUEST))
        api = KmsApi(keyfile.load(Path(stack.enter_context(TemporaryDirectory()))))
        kms.start(api.answer)
        lambdas = stack.enter_context(Loopback(max_body=MAX_ORDER))
        lambdas.start(_summoned)
        items = stack.enter_context(Loopback(max_body=dynamodb.MAX_REQUEST))
        items.start(dynamodb.DynamoDbApi(lambda: table or MemoryTable(environment.TABLE)).answer)
        own = environment.settings(port=80, name="tested", key_arn=api.arn)
        objects = stack.enter_context(Loopback(max_body=s3.MAX_OBJECT))
        name = changes.get("MCP_BLOBS") or "blobs"
        objects.start(s3.S3Api(name, lambda: bucket or s3.Moto(name)).answer)
        pointed = environment.endpoints(kms=kms.url, invoke=lambdas.url, dynamodb=items.url, s3=objects.url)
        stack.enter_context(environment.applied(environment.CREDENTIALS | own | pointed | changes))
        yield


def _summoned(request: HttpRequest) -> HttpResponse:
    """Take the call of a worker, which comes when a conversation lets it: `poll`."""
    invoked = INVOKED.fullmatch(request.target)
    if invoked and request.header("x-amz-invocation-type") == "Event":
        summoned.append((unquote(invoked[1]).partition(":")[0], request.body or b"{}"))
        return HttpResponse(202)
    return json_response(
        404, {"Message": "only workers are called here"}, ("x-amzn-errortype", "ResourceNotFoundException")
    )


def orders(worker: str) -> Iterator[dict[str, Any]]:
    """Take the orders of one worker that has not come yet, those that come meanwhile too.

    Args:
        worker: its physical name.

    """
    while found := next((order for order in summoned if order[0] == worker), None):
        summoned.remove(found)
        yield json.loads(found[1])


@dataclass
class Context:
    """Lambda's context object, as far as the toolkit and Powertools read it."""

    function_name: str = "local-function"
    remaining_ms: int = 29_000
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = ""
    aws_request_id: str = ""

    def get_remaining_time_in_millis(self) -> int:
        """Say how long the function may still run."""
        return self.remaining_ms


class Warm:
    """Containers of one function in this process, one for each environment: a container reads its own but once."""

    def __init__(self, handler: LambdaFunction, now: Callable[[], float] | None = None) -> None:
        """Hold the function; `now` is the clock of its containers, if it is not the function's own."""
        self._handler, self._now = handler, now
        self._containers: dict[object, LambdaFunction] = {}

    @classmethod
    def of(cls, handler: LambdaFunction) -> Warm:
        """Find the containers that all conversations with a function share."""
        warm: Warm = vars(handler).setdefault("_warm", cls(handler))
        return warm

    def __call__(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        """Answer one event."""
        around = frozenset((name, value) for name, value in os.environ.items() if name.startswith(("MCP_", "AWS_")))
        if around not in self._containers:
            # never the function itself: whoever calls it beside a conversation has an environment of his own
            self._containers[around] = self._handler.fresh(now=self._now)
        return _outside_of_loops(partial(self._containers[around], event, context))


class Cold:
    """A function that begins anew for every event, in a Python process of its own: nothing is left but the state."""

    def __init__(self, handler: LambdaFunction, later: Callable[[], float]) -> None:
        """Find where the function comes from.

        Args:
            handler: the value of a module's variable, as `handler = serve(…)` makes it.
            later: seconds by which the process's clock is ahead.

        Raises:
            ValueError: no module has it: another process could not find it.

        """
        self._place, self._later = _place(handler), later

    def __call__(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        """Answer one event.

        Raises:
            RuntimeError: the process failed; what it wrote to stderr says why.

        """
        asked = {"event": event, "name": context.function_name, "remaining": context.remaining_ms}
        told = json.dumps({**asked, **self._place, "path": sys.path, "later": self._later()})
        command = [sys.executable, "-m", "mcp_functions.testing"]
        done = subprocess.run(command, input=told, stdout=subprocess.PIPE, text=True, check=False, timeout=SECONDS)  # noqa: S603 - our own words
        if done.returncode:
            message = f"a fresh process of {self._place['file']} ended with {done.returncode}: see its stderr"
            raise RuntimeError(message)
        response: dict[str, Any] = json.loads(done.stdout)
        return response


def _outside_of_loops(answer: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Answer as on Lambda, where no event loop runs yet, also in an async test."""
    if event_loop.is_current():
        return answer()  # not from another thread: an async handler would wait there for this one
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return answer()
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(copy_context().run, answer).result()


def _place(handler: LambdaFunction) -> Mapping[str, str]:
    for offered in handler.handlers:
        module = sys.modules.get(offered.function.__module__)
        for variable, value in vars(module).items() if module else ():
            is_handler = value is handler or (isinstance(value, FunctionType) and unwrap(value) is handler)
            if is_handler and module and module.__file__:
                return {"module": module.__name__, "file": module.__file__, "variable": variable}
    message = (
        "fresh=True needs `handler = serve(…)` in the module of its function: a fresh process imports it from there"
    )
    raise ValueError(message)
