"""Runs the functions of a project on this machine, behind copies of API Gateway, Lambda, KMS and DynamoDB.

    client -> Api: routes and authorizer -> Lambdas: run one function, record the invocation
                                                 ^ Invoke API: one function calls another

`Harness` takes a directory with a folder for each function, and gives the URL of its MCP server. Its endpoints, the
key, the table and the functions start and end together.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mcp_functions.local import authorization, environment
from mcp_functions.local.api_gateway.api import MAX_BODY, Api
from mcp_functions.local.issuer import USER
from mcp_functions.local.lambdas import MAX_PAYLOAD, Invocation, Lambdas, Outcome, own_variables
from mcp_functions.local.lambdas.functions import FRONT_DOOR, SIGN_IN, Function, Functions, find
from mcp_functions.local.lambdas.in_process import InProcess
from mcp_functions.local.lambdas.invoke_api import InvokeApi
from mcp_functions.local.loopback import Loopback
from mcp_functions.local.page import Access, Page
from mcp_functions.local.problems import stop
from mcp_functions.local.runtime import Runtime
from mcp_functions.local.services import Services
from mcp_functions.local.template_variables import TemplateVariables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.local.api_gateway.authorizer import JwtAuthorizer
    from mcp_functions.local.authorization import LocalAuthMode
    from mcp_functions.local.environment import Variables
    from mcp_functions.local.issuer import Issuer
    from mcp_functions.local.lambdas.service import Run

STATE_DIR = Path(".mcp-functions")


def _write_to_stderr(folder: str, line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # the reader of stderr may have ended
        sys.stderr.write(f"{folder}  {line}\n")


@dataclass(eq=False)
class Harness:
    """API Gateway, Lambda, KMS and DynamoDB for one directory of functions, while its block runs.

    It changes the environment of the whole process, so only one harness can run at a time.

    Attributes:
        directory: contains a folder for each function.
        port: the port for clients; 0 for any free port.
        state_dir: keeps the KMS key and the table between runs.
        auth: "jwt" requires an access token of a local issuer, like a deployment with AuthMode jwt. "oauth" also runs
            the sign-in front, functions/oauth, before that issuer, which then asks who signs in.
        runtime: whether functions run as processes of the real Lambda runtime, not in this process.
        reuse: whether such a process takes a second invocation.
        verbose_log: whether such a process also logs whole tracebacks, and reports its progress.
        debug: whether tracebacks of functions in this process include the toolkit's own frames.
        on_log: called with a function's folder and a line about it, or of its process's log. The default writes to
            stderr.
        on_invocation: called after every invocation of a function.
        on_exchange: called with the folder, the event as JSON and the outcome of every invocation.
        on_progress: called with the folder, `progress` and `total` when a function reports progress.
        key_arn: the ARN of the KMS key that encrypts `requestState`, the state of an unfinished call.
        url: the server's URL for clients, e.g. "http://127.0.0.1:8000/mcp".
        issuer: the authorization server, which also makes tokens for tests; None with `auth="none"`.
    """

    directory: Path = Path("functions")
    port: int = field(default=0, kw_only=True)
    state_dir: Path = field(default=STATE_DIR, kw_only=True)
    auth: LocalAuthMode = field(default="none", kw_only=True)
    runtime: bool = field(default=False, kw_only=True)
    reuse: bool = field(default=True, kw_only=True)
    verbose_log: bool = field(default=False, kw_only=True)
    debug: bool = field(default=False, kw_only=True)
    on_log: Callable[[str, str], None] = field(default=_write_to_stderr, kw_only=True)
    on_invocation: Callable[[Invocation], None] = field(default=lambda _: None, kw_only=True)
    on_exchange: Callable[[str, bytes, Outcome], None] = field(default=lambda *_: None, kw_only=True)
    on_progress: Callable[[str, float, float | None], None] = field(default=lambda *_: None, kw_only=True)
    key_arn: str = field(default="", init=False)
    url: str = field(default="", init=False)
    issuer: Issuer | None = field(default=None, init=False)
    _running: ExitStack = field(default_factory=ExitStack, init=False)  # stops everything when it is closed
    _folders: list[str] = field(default_factory=list, init=False)  # the folders of the functions that are served
    _functions: Functions | None = field(default=None, init=False)  # with `runtime`, None until they are needed
    _runtime: Runtime | None = field(default=None, init=False)
    # `__enter__` sets these two.
    _lambdas: Lambdas = field(init=False)
    _template_variables: TemplateVariables = field(init=False)

    @property
    def functions(self) -> Mapping[str, Function]:
        """The loaded functions by folder. With `runtime` they are loaded now, in this process too.

        Raises:
            Problem: a function does not load.
        """
        return self._loaded().by_folder

    @property
    def invocations(self) -> list[Invocation]:
        """The last calls of functions, in the order in which they ended."""
        return self._lambdas.invocations

    @property
    def undeployed(self) -> frozenset[str]:
        """The folders that this AuthMode does not deploy."""
        return frozenset() if self.auth == "oauth" else frozenset({SIGN_IN})

    def configure(self, folders: Sequence[str]) -> list[str]:
        """Serve these folders, with the variables that template.yaml gives them now.

        Returns:
            A new line for each variable that only a deployment knows.

        Raises:
            Problem: the template cannot be read; the last one stays.
        """
        if self._runtime:
            self._runtime.configure(folders)
        unknown = self._template_variables.load(folders)
        self._folders[:] = folders  # in place, because the API reads the same list
        return unknown

    def load(self, folder: str) -> None:
        """Load a function again. If it does not load, the version before stays.

        Raises:
            Problem: it does not load.
        """
        self._loaded().load(self.directory.resolve() / folder / "app.py")

    def unload(self, folder: str) -> None:
        """Forget a function."""
        self._loaded().unload(folder)

    def kill_only_process(self, folder: str) -> bool:
        """With `runtime`, kill the process that runs a request of a function, if there is exactly one.

        Args:
            folder: the function's folder; with the suffix WORKER, its worker is meant.
        """
        return self._runtime is not None and self._runtime.fleet.kill_only_process(folder)

    def __enter__(self) -> Self:
        """Start everything.

        Raises:
            Problem: the user has to correct something first.
        """
        with ExitStack() as starting:
            self._start(starting)
            self._running = starting.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop everything, and restore the environment."""
        self._running.close()

    def _start(self, starting: ExitStack) -> None:
        """Start all parts, each before those that need it; `starting` stops them in the opposite order."""
        # The most frequent mistake is the wrong directory: report it before anything is opened.
        self._folders = self._find_folders()
        shell = dict(os.environ)
        api_loopback = starting.enter_context(Loopback(port=self.port, max_body=MAX_BODY))
        invoke_loopback = starting.enter_context(Loopback(max_body=2 * MAX_PAYLOAD))
        services = Services(starting, self.state_dir, self.directory, invoke_loopback.url)
        self.key_arn = services.key_arn
        self.url = f"{api_loopback.url}/{FRONT_DOOR}"
        name = self.directory.resolve().parent.name or "mcp-functions"
        settings = environment.settings(port=api_loopback.port, name=name, key_arn=self.key_arn)
        authorizer = None
        if self.auth != "none":
            access = authorization.start(starting, self.auth, api_loopback.url, self.url, self.directory)
            self.issuer = access.issuer
            authorizer = access.authorizer
            settings |= access.settings
        endpoints = environment.CREDENTIALS | services.endpoints
        starting.enter_context(environment.applied(settings | endpoints))
        own = starting.enter_context(own_variables.layered())
        self._template_variables = TemplateVariables(self.directory, settings | endpoints, shell, own)
        self._lambdas = Lambdas(
            self._folders,
            self._start_functions(starting, settings, endpoints),
            stack=environment.STACK,
            on_exchange=self.on_exchange,
            on_invocation=self.on_invocation,
        )
        invoke_api = InvokeApi(self._lambdas)
        starting.callback(invoke_api.drain)
        invoke_loopback.start(invoke_api.answer)
        self._start_api(api_loopback, authorizer)
        starting.callback(api_loopback.stop)  # stops first, so that no client calls while the rest stops

    def _find_folders(self) -> list[str]:
        folders = [app.parent.name for app in find(self.directory) if app.parent.name not in self.undeployed]
        if self.auth == "oauth" and SIGN_IN not in folders:
            stop(f"there is no {self.directory}/{SIGN_IN}/app.py, the sign-in front: mcp-functions auth oauth")
        return folders

    def _start_functions(self, starting: ExitStack, settings: Variables, endpoints: Variables) -> Run:
        """Get the functions ready, as processes or in this process; return what runs one of them."""
        if self.runtime:
            self._runtime = Runtime(
                self.directory,
                self._folders,
                settings=settings,
                endpoints=endpoints,
                on_log=self.on_log,
                on_progress=self.on_progress,
                reuse=self.reuse,
                verbose_log=self.verbose_log,
            )
            self._template_variables.load(self._folders)
            return starting.enter_context(self._runtime).fleet.run
        for line in self._template_variables.load(self._folders):
            self.on_log("template", line)
        self._functions = starting.enter_context(Functions(self.directory, without=self.undeployed))
        functions = self._functions.by_folder
        return InProcess(functions, stack=environment.STACK, debug=self.debug, on_progress=self.on_progress).run

    def _loaded(self) -> Functions:
        if self._functions is None:
            self._functions = self._running.enter_context(Functions(self.directory, without=self.undeployed))
        return self._functions

    def _start_api(self, loopback: Loopback, authorizer: JwtAuthorizer | None) -> None:
        api = Api(self._lambdas, authorizer=authorizer, has_sign_in=self.auth == "oauth")
        page = Page(
            port=loopback.port,
            token=secrets.token_urlsafe(32),
            key_arn=self.key_arn,
            lambdas=self._lambdas,
            access=self._access,
            now=time.time,
        )
        loopback.start(lambda request: page.answer(request) or api.answer(request))  # the page has routes of its own

    def _access(self) -> Access | None:
        """Make an access token for the page; None if the server wants none."""
        if self.issuer is None:
            return None
        scopes = authorization.scopes(self.directory)
        return Access(self.issuer.token(scope=" ".join(scopes)), USER, scopes)
