"""The harness as a whole: three endpoints, one key, the functions; all of it starts together and ends together."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mcp_functions.local import environment, keyfile
from mcp_functions.local.api import MAX_BODY, Api
from mcp_functions.local.functions import FRONT_DOOR, Function, Functions, find
from mcp_functions.local.invoke import InvokeApi
from mcp_functions.local.kms import MAX_REQUEST, KmsApi
from mcp_functions.local.lambdas import MAX_PAYLOAD, Invocation, Lambdas
from mcp_functions.local.loopback import Loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STATE_DIR = Path(".mcp-functions")


class Harness:
    """API Gateway, Lambda and KMS for one directory of functions, from the start of its block to the end of it.

    The environment is the whole process's, so one at a time.
    """

    def __init__(
        self,
        functions: Path = Path("functions"),
        *,
        port: int = 0,
        state_dir: Path = STATE_DIR,
        debug: bool = False,
        ended: Callable[[Invocation], None] = lambda _: None,
    ) -> None:
        """Remember what to serve; nothing is opened before the block.

        Args:
            functions: the directory that holds a folder for each function.
            port: for clients, 0 for any free one.
            state_dir: keeps the KMS key between runs.
            debug: write tracebacks of functions that raise to stderr.
            ended: called after every invocation of a function.

        """
        self._directory, self._port, self._state_dir = functions, port, state_dir
        self._debug, self._ended = debug, ended
        self._running = ExitStack()
        self._lambdas = Lambdas({}, stack=environment.STACK)
        self._functions: Mapping[str, Function] = {}
        self._url = ""

    @property
    def url(self) -> str:
        """What a client connects to, e.g. "http://127.0.0.1:8000/mcp"."""
        return self._url

    @property
    def functions(self) -> Mapping[str, Function]:
        """The loaded functions by folder."""
        return self._functions

    @property
    def invocations(self) -> list[Invocation]:
        """The last calls of functions, in the order in which they ended."""
        return self._lambdas.invocations

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
        find(self._directory)  # the commonest mistake is the wrong directory: say so before anything is opened
        api = starting.enter_context(Loopback(port=self._port, max_body=MAX_BODY))
        kms = starting.enter_context(Loopback(max_body=MAX_REQUEST))
        invoke = starting.enter_context(Loopback(max_body=2 * MAX_PAYLOAD))
        kms_api = KmsApi(keyfile.load(self._state_dir))
        kms.start(kms_api.answer)
        own = environment.settings(port=api.port, name=self._name(), key_arn=kms_api.arn)
        pointed = environment.endpoints(kms=kms.url, invoke=invoke.url)
        starting.enter_context(environment.applied(environment.CREDENTIALS | own | pointed))
        loaded = starting.enter_context(Functions(self._directory))
        self._functions = loaded.by_folder
        self._lambdas = Lambdas(self._functions, stack=environment.STACK, debug=self._debug, ended=self._ended)
        invoke_api = InvokeApi(self._lambdas)
        starting.callback(invoke_api.drain)
        invoke.start(invoke_api.answer)
        api.start(Api(self._lambdas, self._functions).answer)
        starting.callback(api.stop)  # first of all at the end: nobody may ask while the rest goes away
        self._url = f"{api.url}/{FRONT_DOOR}"

    def _name(self) -> str:
        return self._directory.resolve().parent.name or "mcp-functions"
