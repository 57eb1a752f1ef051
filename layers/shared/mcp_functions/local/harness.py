"""The harness as a whole: endpoints, a key, a table, the functions. All of it starts and ends together."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Literal, Self

from mcp_functions.local import environment
from mcp_functions.local.api_gateway.api import MAX_BODY, Api
from mcp_functions.local.api_gateway.authorizer import JwtAuthorizer
from mcp_functions.local.doubles import dynamodb, keyfile, s3
from mcp_functions.local.doubles.dynamodb import DynamoDbApi, Moto, table
from mcp_functions.local.doubles.kms import MAX_REQUEST, KmsApi
from mcp_functions.local.doubles.tablefile import StoredTable, TableFile
from mcp_functions.local.issuer import MAX_REQUEST as MAX_FORM
from mcp_functions.local.issuer import Issuer
from mcp_functions.local.lambdas import MAX_PAYLOAD, Invocation, Lambdas
from mcp_functions.local.lambdas.functions import FRONT_DOOR, Function, Functions, find
from mcp_functions.local.lambdas.in_process import InProcess
from mcp_functions.local.lambdas.invoke_api import InvokeApi
from mcp_functions.local.loopback import Loopback
from mcp_functions.local.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.local.lambdas.service import Run
    from mcp_functions.local.loopback import HttpRequest, HttpResponse

STATE_DIR = Path(".mcp-functions")


class Harness:
    """API Gateway, Lambda and KMS for one directory of functions, from the start of its block to the end of it.

    The environment is the whole process's, so one at a time.

    Attributes:
        issuer: with `auth="jwt"`, the authorization server; it also makes tokens for tests.

    """

    def __init__(  # noqa: PLR0913 - what its user may decide
        self,
        functions: Path = Path("functions"),
        *,
        port: int = 0,
        state_dir: Path = STATE_DIR,
        debug: bool = False,
        ended: Callable[[Invocation], None] = lambda _: None,
        runtime: bool = False,
        reuse: bool = True,
        said: Callable[[str, str], None] | None = None,
        auth: Literal["none", "jwt"] = "none",
    ) -> None:
        """Remember what to serve; nothing is opened before the block.

        Args:
            functions: the directory that holds a folder for each function.
            port: for clients, 0 for any free one.
            state_dir: keeps the KMS key and the table between runs.
            debug: write the whole tracebacks of functions that raise to stderr, the toolkit's own frames too.
            ended: called after every invocation of a function.
            runtime: run functions as processes of the real Lambda runtime, not in this one.
            reuse: with `runtime`, whether a process takes a second invocation.
            said: with `runtime`, called with a function's folder and each line of its log; else they go to stderr.
            auth: "jwt" requires an access token of a local issuer, as a deployment with AuthMode jwt does.

        """
        self._directory, self._port, self._state_dir = functions, port, state_dir
        self._debug, self._ended = debug, ended
        self._runtime, self._reuse, self._said = runtime, reuse, said or _say
        self._auth = auth
        self.issuer: Issuer | None = None
        self._running = ExitStack()
        self._lambdas: Lambdas | None = None
        self._functions: Mapping[str, Function] | None = None
        self._url = ""
        self._runtimes: Runtime | None = None

    @property
    def url(self) -> str:
        """What a client connects to, e.g. "http://127.0.0.1:8000/mcp"."""
        return self._url

    @property
    def functions(self) -> Mapping[str, Function]:
        """The loaded functions by folder; with `runtime`, they are loaded when somebody asks, to describe them.

        Raises:
            Problem: one of them does not load.

        """
        if self._functions is None:
            self._functions = self._running.enter_context(Functions(self._directory)).by_folder
        return self._functions

    @property
    def invocations(self) -> list[Invocation]:
        """The last calls of functions, in the order in which they ended."""
        return self._lambdas.invocations if self._lambdas else []

    def kill(self, folder: str, *, alone: bool = False) -> int:
        """With `runtime`, kill the processes that run a request of a function now; say how many.

        Args:
            folder: of the function; with WORKER behind it, of its worker.
            alone: only if there is just one.

        """
        return self._runtimes.kill(folder, alone=alone) if self._runtimes else 0

    def __enter__(self) -> Self:
        """Start everything.

        Raises:
            Problem: the user has to put something right first.

        """
        with ExitStack() as starting:
            self._start(starting)
            self._running = starting.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop everything, and put the environment back."""
        self._running.close()

    def _start(self, starting: ExitStack) -> None:
        # the commonest mistake is the wrong directory: say so before anything is opened
        folders = [app.parent.name for app in find(self._directory)]
        api = starting.enter_context(Loopback(port=self._port, max_body=MAX_BODY))
        kms = starting.enter_context(Loopback(max_body=MAX_REQUEST))
        invoke = starting.enter_context(Loopback(max_body=2 * MAX_PAYLOAD))
        kms_api = KmsApi(keyfile.load(self._state_dir))
        file = starting.enter_context(TableFile(self._state_dir, now=time.time()))
        items = starting.enter_context(Loopback(max_body=dynamodb.MAX_REQUEST))
        tables = DynamoDbApi(partial(StoredTable, file, environment.TABLE, partial(Moto, table(environment.TABLE))))
        items.start(tables.answer)
        kms.start(kms_api.answer)
        own = environment.settings(port=api.port, name=self._name(), key_arn=kms_api.arn)
        authorizer = self._authorizer(starting, own, f"{api.url}/{FRONT_DOOR}") if self._auth == "jwt" else None
        objects = _objects(starting)
        s3_url, warm_objects = objects or (None, None)
        at = environment.endpoints(kms=kms.url, invoke=invoke.url, dynamodb=items.url, s3=s3_url)
        pointed = environment.CREDENTIALS | at
        starting.enter_context(environment.applied(own | pointed))
        run = self._started(starting, folders, own, pointed)
        warming = Thread(target=_warm, args=(kms_api.warm, tables.warm, warm_objects), daemon=True)
        warming.start()
        starting.callback(warming.join)
        lambdas = self._lambdas = Lambdas(folders, run, stack=environment.STACK, ended=self._ended)
        invoke_api = InvokeApi(lambdas)
        starting.callback(invoke_api.drain)
        invoke.start(invoke_api.answer)
        answer = Api(lambdas, folders, authorizer=authorizer).answer

        def in_time(request: HttpRequest) -> HttpResponse:
            warming.join()  # a client has more patience than functions have with KMS and DynamoDB
            return answer(request)

        api.start(in_time)
        starting.callback(api.stop)  # first of all at the end: nobody may ask while the rest goes away
        self._url = f"{api.url}/{FRONT_DOOR}"

    def _started(
        self, starting: ExitStack, folders: list[str], own: dict[str, str | None], pointed: dict[str, str | None]
    ) -> Run:
        if self._runtime:
            runtime = Runtime(self._directory, folders, own=own, pointed=pointed, said=self._said, reuse=self._reuse)
            self._runtimes = runtime
            return starting.enter_context(runtime).run
        self._functions = starting.enter_context(Functions(self._directory)).by_folder
        return InProcess(self._functions, stack=environment.STACK, debug=self._debug).run

    def _authorizer(self, starting: ExitStack, own: dict[str, str | None], resource: str) -> JwtAuthorizer:
        door = starting.enter_context(Loopback(max_body=MAX_FORM))
        made = self.issuer = Issuer(door.url, resource)
        door.start(made.answer)
        own |= environment.for_tokens(issuer=door.url, resource=resource)
        return JwtAuthorizer(door.url, [resource], lambda: made.jwks)

    def _name(self) -> str:
        return self._directory.resolve().parent.name or "mcp-functions"


def _warm(*services: Callable[[], object] | None) -> None:
    """Have moto imported before anybody waits for it: that takes longer than functions wait for AWS."""
    for warm in services:
        with contextlib.suppress(Exception):  # whoever asks will hear it
            if warm:
                warm()


def _objects(starting: ExitStack) -> tuple[str, Callable[[], object]] | None:
    """Serve the bucket that the shell names, if it names one: without it, what does not fit is refused, as deployed."""
    name = os.environ.get("MCP_BLOBS")
    if not name:
        return None
    objects = starting.enter_context(Loopback(max_body=s3.MAX_OBJECT))
    api = s3.S3Api(name, partial(s3.Moto, name))
    objects.start(api.answer)
    return objects.url, api.warm


def _say(folder: str, line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # whoever reads stderr may have gone
        sys.stderr.write(f"{folder}  {line}\n")
