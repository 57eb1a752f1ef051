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
from typing import TYPE_CHECKING, Literal, Self

from mcp_functions.local import catalog as catalogs
from mcp_functions.local import environment
from mcp_functions.local.api_gateway.api import MAX_BODY, Api
from mcp_functions.local.api_gateway.authorizer import JwtAuthorizer
from mcp_functions.local.issuer import MAX_REQUEST as MAX_FORM
from mcp_functions.local.issuer import USER, Behaviour, Issuer
from mcp_functions.local.lambdas import MAX_PAYLOAD, Invocation, Lambdas, Outcome, own_variables
from mcp_functions.local.lambdas.functions import FRONT_DOOR, SIGN_IN, Function, Functions, find
from mcp_functions.local.lambdas.in_process import InProcess
from mcp_functions.local.lambdas.invoke_api import InvokeApi
from mcp_functions.local.loopback import Loopback
from mcp_functions.local.page import Access, ExecutionLog, Page
from mcp_functions.local.problems import stop
from mcp_functions.local.runtime import Runtime, configuration
from mcp_functions.local.services import Services

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.local.environment import Variables
    from mcp_functions.local.lambdas.service import Run

STATE_DIR = Path(".mcp-functions")
CLIENT_OF_FRONT = "local-front"  # the client id of the sign-in front (functions/oauth) at the local issuer


def _write_log(folder: str, line: str) -> None:
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
        debug: whether tracebacks of functions include the toolkit's own frames.
        on_invocation: called after every invocation of a function.
        runtime: whether functions run as processes of the real Lambda runtime, not in this process.
        reuse: with `runtime`, whether a process takes a second invocation.
        on_log: called with a function's folder and a line about it; with `runtime` also with each line of its log. The
            default writes to stderr.
        auth: "jwt" requires an access token of a local issuer, like a deployment with AuthMode jwt. "oauth" also runs
            the sign-in front, functions/oauth, before that issuer, which then asks who signs in.
        on_exchange: called with the folder, the event as JSON and the outcome of every invocation.
        on_progress: called with the folder, `progress` and `total` when a function of this process reports progress.
        reports: with `runtime`, whether processes write whole tracebacks and their progress into their log.
        key_arn: the ARN of the KMS key that encrypts `requestState`, the state of an unfinished call.
        url: the server's URL for clients, e.g. "http://127.0.0.1:8000/mcp".
        issuer: the authorization server, which also makes tokens for tests; None with `auth="none"`.
    """

    directory: Path = Path("functions")
    port: int = field(default=0, kw_only=True)
    state_dir: Path = field(default=STATE_DIR, kw_only=True)
    debug: bool = field(default=False, kw_only=True)
    on_invocation: Callable[[Invocation], None] = field(default=lambda _: None, kw_only=True)
    runtime: bool = field(default=False, kw_only=True)
    reuse: bool = field(default=True, kw_only=True)
    on_log: Callable[[str, str], None] = field(default=_write_log, kw_only=True)
    auth: Literal["none", "jwt", "oauth"] = field(default="none", kw_only=True)
    on_exchange: Callable[[str, bytes, Outcome], None] = field(default=lambda *_: None, kw_only=True)
    on_progress: Callable[[str, float, float | None], None] | None = field(default=None, kw_only=True)
    reports: bool = field(default=False, kw_only=True)
    key_arn: str = field(default="", init=False)
    url: str = field(default="", init=False)
    issuer: Issuer | None = field(default=None, init=False)
    _running: ExitStack = field(default_factory=ExitStack, init=False)
    _lambdas: Lambdas | None = field(default=None, init=False)
    _functions: Functions | None = field(default=None, init=False)
    _folders: list[str] = field(default_factory=list, init=False)
    _settings: Variables = field(default_factory=dict, init=False)  # the variables that the harness decides
    _shell: dict[str, str] = field(default_factory=dict, init=False)  # the environment before the harness changed it
    _own_variables: own_variables.OwnVariables | None = field(default=None, init=False)
    # a line for each variable of the template whose value only a deployment knows
    _unknown: list[str] = field(default_factory=list, init=False)
    _runtime: Runtime | None = field(default=None, init=False)

    @property
    def functions(self) -> Mapping[str, Function]:
        """The loaded functions by folder. With `runtime` they are loaded now, in this process too.

        Raises:
            Problem: a function does not load.
        """
        return self._all().by_folder

    @property
    def invocations(self) -> list[Invocation]:
        """The last calls of functions, in the order in which they ended."""
        return self._lambdas.invocations if self._lambdas else []

    @property
    def left_out(self) -> frozenset[str]:
        """The folders that this AuthMode does not deploy."""
        return frozenset() if self.auth == "oauth" else frozenset({SIGN_IN})

    def configure(self, folders: Sequence[str]) -> list[str]:
        """Serve these folders, with the variables that template.yaml gives them now.

        Returns:
            A line for each variable that only a deployment knows and that was not told before.

        Raises:
            Problem: the template cannot be read; the last one stays.
        """
        told_before = set(self._unknown)
        if self._runtime:
            self._runtime.configure(folders)
        self._set_variables(folders)
        self._folders[:] = folders  # in place, because the API and the page read the same list
        return [line for line in self._unknown if line not in told_before]

    def load(self, folder: str) -> None:
        """Load a function again. If it does not load, the version before stays.

        With `runtime`, its next process starts at once, so that the next call need not wait for it.

        Raises:
            Problem: it does not load.
        """
        self._all().load(self.directory.resolve() / folder / "app.py")
        if self._runtime:
            self._runtime.fleet.prepare(folder)

    def unload(self, folder: str) -> None:
        """Forget a function."""
        self._all().unload(folder)

    def _set_variables(self, folders: Sequence[str]) -> None:
        variables, self._unknown = configuration.own_variables(self.directory, folders, self._settings, self._shell)
        if self._own_variables:
            self._own_variables.set(variables)

    def _all(self) -> Functions:
        if self._functions is None:
            self._functions = self._running.enter_context(Functions(self.directory, without=self.left_out))
        return self._functions

    def kill(self, folder: str, *, alone: bool = False) -> int:
        """With `runtime`, kill the processes that run a request of a function; return their number.

        Args:
            folder: the function's folder; with the suffix WORKER, the processes of its worker are killed.
            alone: kill only if there is exactly one process.
        """
        if self._runtime is None:
            return 0
        return self._runtime.fleet.kill(folder, alone=alone)

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
        api = starting.enter_context(Loopback(port=self.port, max_body=MAX_BODY))
        invoke = starting.enter_context(Loopback(max_body=2 * MAX_PAYLOAD))
        services = Services(starting, self.state_dir, self.directory)
        self.key_arn = services.key_arn
        self.url = f"{api.url}/{FRONT_DOOR}"
        self._shell = dict(os.environ)
        name = self.directory.resolve().parent.name or "mcp-functions"
        settings = environment.settings(port=api.port, name=name, key_arn=services.key_arn)
        authorizer = None
        if self.auth != "none":
            self.issuer = issuer = self._start_issuer(starting, front=api.url)
            settings |= self._auth_settings(issuer, front=api.url)
            authorizer = JwtAuthorizer(issuer.url, [self.url], lambda: issuer.jwks)
        endpoints = environment.CREDENTIALS | services.endpoints(invoke.url)
        self._settings = settings | endpoints
        starting.enter_context(environment.applied(self._settings))
        self._own_variables = starting.enter_context(own_variables.layered())
        executions = ExecutionLog()
        self._lambdas = lambdas = Lambdas(
            self._folders,
            self._start_functions(starting, settings, endpoints),
            stack=environment.STACK,
            ended=self.on_invocation,
            observers=[executions.add, self.on_exchange],
        )
        invoke_api = InvokeApi(lambdas)
        starting.callback(invoke_api.drain)
        invoke.start(invoke_api.answer)
        gateway = Api(lambdas, self._folders, authorizer=authorizer, signs_in=self.auth == "oauth")
        page = self._page(api.port, executions)
        api.start(lambda request: page.answer(request) or gateway.answer(request))  # the page answers its own routes
        starting.callback(api.stop)  # stops first, so that no client calls while the rest stops

    def _find_folders(self) -> list[str]:
        folders = [app.parent.name for app in find(self.directory) if app.parent.name not in self.left_out]
        if self.auth == "oauth" and SIGN_IN not in folders:
            stop(f"there is no {self.directory}/{SIGN_IN}/app.py, the sign-in front: mcp-functions auth oauth")
        return folders

    def _page(self, port: int, executions: ExecutionLog) -> Page:
        return Page(
            port=port,
            token=secrets.token_urlsafe(32),
            key_arn=self.key_arn,
            folders=self._folders,
            executions=executions,
            access=self._access,
            now=time.time,
        )

    def _start_functions(self, starting: ExitStack, settings: Variables, endpoints: Variables) -> Run:
        """Get the functions ready, as processes or in this process; return what runs one of them."""
        if self.runtime:
            self._runtime = Runtime(
                self.directory,
                self._folders,
                settings=settings,
                endpoints=endpoints,
                on_log=self.on_log,
                reuse=self.reuse,
                reports=self.reports,
            )
        self._set_variables(self._folders)
        if self._runtime:
            return starting.enter_context(self._runtime).fleet.run
        for line in self._unknown:
            self.on_log("template", line)
        self._functions = starting.enter_context(Functions(self.directory, without=self.left_out))
        functions = self._functions.by_folder
        return InProcess(functions, stack=environment.STACK, debug=self.debug, on_progress=self.on_progress).run

    def _access(self) -> Access | None:
        """Make an access token for the page; None if the server wants none."""
        if self.issuer is None:
            return None
        return Access(self.issuer.token(scope=" ".join(self._scopes)), USER, self._scopes)

    @property
    def _scopes(self) -> tuple[str, ...]:
        return tuple(catalogs.read(self.directory).get("scopes", ()))

    def _start_issuer(self, starting: ExitStack, front: str) -> Issuer:
        loopback = starting.enter_context(Loopback(max_body=MAX_FORM))
        behaviour = Behaviour()
        if self.auth == "oauth":
            behaviour = Behaviour(clients={CLIENT_OF_FRONT: (f"{front}/callback",)}, asks=True)
        issuer = Issuer(loopback.url, self.url, behaviour=behaviour)
        loopback.start(issuer.answer)
        return issuer

    def _auth_settings(self, issuer: Issuer, front: str) -> Variables:
        settings = environment.for_tokens(issuer=issuer.url, resource=self.url)
        if self.auth == "oauth":
            settings |= environment.for_sign_in(url=front, client_id=CLIENT_OF_FRONT, scopes=self._scopes)
        return settings
