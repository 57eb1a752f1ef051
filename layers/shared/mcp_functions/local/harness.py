"""Runs the functions of a project on this machine, behind copies of API Gateway, Lambda, KMS and DynamoDB.

    client -> Api: routes and authorizer -> Lambdas: run one function, record the invocation
                                                 ^ InvokeApi: one function calls another

`Harness` takes a directory with a folder for each function, and gives the URL of its MCP server. `Lambdas` runs a
function in one of two places:

    InProcess    in this process: fast, and easy to debug
    Fleet        with `runtime`, in another process, as on Lambda; `Launcher` starts the processes
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mcp_functions.local import authorization, environment, services
from mcp_functions.local.api_gateway.api import MAX_BODY, Api
from mcp_functions.local.lambdas import MAX_PAYLOAD, Lambdas
from mcp_functions.local.lambdas.functions import FRONT_DOOR, SIGN_IN, Function, Functions, find
from mcp_functions.local.lambdas.in_process import InProcess
from mcp_functions.local.lambdas.invoke_api import InvokeApi
from mcp_functions.local.lambdas.own_variables import layered
from mcp_functions.local.loopback import Loopback
from mcp_functions.local.page import Page
from mcp_functions.local.problems import stop
from mcp_functions.local.runtime.fleet import Fleet
from mcp_functions.local.runtime.launcher import Launcher
from mcp_functions.local.runtime.watchdog import Watchdog
from mcp_functions.local.template_variables import TemplateVariables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_functions.local.authorization import LocalAuthMode
    from mcp_functions.local.environment import Variables
    from mcp_functions.local.issuer import Issuer
    from mcp_functions.local.lambdas import Invocation, Watcher
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
        auth: who may call, as with the AuthMode of a deployment:
            "none": everybody.
            "jwt": who has an access token of a local issuer, which gives one to every client.
            "oauth": the same, and the sign-in front, functions/oauth, runs before the issuer, which asks who signs in.
        runtime: whether functions run in processes of the real Lambda runtime. Otherwise they run in this process.
        reuse: with `runtime`, whether a process takes a second invocation.
        debug: without `runtime`, whether tracebacks of functions include the toolkit's own frames.
        on_log: called with a function's folder and one line of its log, or one line about its configuration. The
            default writes to stderr.
        on_invocation: called after every invocation of a function.
        watcher: shows an author each call that has ended, and how far a call is. An author who watches needs whole
            tracebacks too, so the processes write them. Without a watcher they log only what they log on Lambda.

    While the block runs, it has these attributes too:
        url: the server's URL for clients, e.g. "http://127.0.0.1:8000/mcp".
        key_arn: the ARN of the KMS key that encrypts `requestState`, the state of an unfinished call.
        issuer: the authorization server, which also makes tokens for tests; None with `auth="none"`.
    """

    directory: Path = Path("functions")
    port: int = field(default=0, kw_only=True)
    state_dir: Path = field(default=STATE_DIR, kw_only=True)
    auth: LocalAuthMode = field(default="none", kw_only=True)
    runtime: bool = field(default=False, kw_only=True)
    reuse: bool = field(default=True, kw_only=True)
    debug: bool = field(default=False, kw_only=True)
    on_log: Callable[[str, str], None] = field(default=_write_to_stderr, kw_only=True)
    on_invocation: Callable[[Invocation], None] = field(default=lambda _: None, kw_only=True)
    watcher: Watcher | None = field(default=None, kw_only=True)
    url: str = field(default="", init=False)
    key_arn: str = field(default="", init=False)
    issuer: Issuer | None = field(default=None, init=False)
    _running: ExitStack = field(default_factory=ExitStack, init=False)  # stops everything when it is closed
    _fleet: Fleet | None = field(default=None, init=False)  # the processes of the functions; None without `runtime`
    # `__enter__` sets these two.
    _lambdas: Lambdas = field(init=False)
    _template_variables: TemplateVariables = field(init=False)

    @property
    def functions(self) -> Mapping[str, Function]:
        """The functions by folder, loaded into this process; with `runtime` they are loaded when they are first needed.

        Raises:
            Problem: a function does not load.
        """
        return self._loaded.by_folder

    @property
    def invocations(self) -> list[Invocation]:
        """The last calls of functions, in the order in which they ended."""
        return self._lambdas.invocations

    @property
    def skipped_folders(self) -> frozenset[str]:
        """The folders that are not served: the sign-in front belongs to "oauth" alone."""
        if self.auth == "oauth":
            return frozenset()
        return frozenset({SIGN_IN})

    def configure(self, folders: Sequence[str]) -> list[str]:
        """Serve these folders, with the variables that template.yaml gives them now.

        Returns:
            A new line for each variable that only a deployment knows.

        Raises:
            Problem: the template cannot be read; the last one stays.
        """
        if self._fleet:
            self._fleet.launcher.configure(folders)
        unknown = self._template_variables.load(folders)
        self._lambdas.folders = folders
        return unknown

    def load(self, folder: str) -> None:
        """Load a function again. If it does not load, the version before stays.

        Raises:
            Problem: it does not load.
        """
        self._loaded.load(self.directory.resolve() / folder / "app.py")

    def unload(self, folder: str) -> None:
        """Forget a function."""
        self._loaded.unload(folder)

    def kill_only_process(self, folder: str) -> bool:
        """With `runtime`, kill the process that runs a request of a function, if there is exactly one.

        Args:
            folder: the function's folder; with the suffix WORKER, its worker is meant.
        """
        return self._fleet is not None and self._fleet.kill_only_process(folder)

    def __enter__(self) -> Self:
        """Start everything.

        Raises:
            Problem: the user has to correct something first.
        """
        try:
            self._start()
        except BaseException:
            self._running.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop everything, and restore the environment."""
        self._running.close()

    def _start(self) -> None:
        """Start all parts, each before those that need it; `_running` stops them in the opposite order."""
        # The most frequent mistake is the wrong directory: report it before anything is opened.
        folders = self._find_folders()
        self.__dict__.pop("_loaded", None)  # the functions of an earlier run have ended with it
        shell = dict(os.environ)

        # 1. The addresses, which the other parts must know. They answer requests from steps 4 and 5 on.
        api_loopback = self._running.enter_context(Loopback(port=self.port, max_body=MAX_BODY))
        invoke_loopback = self._running.enter_context(Loopback(max_body=2 * MAX_PAYLOAD))
        self.url = f"{api_loopback.url}/{FRONT_DOOR}"

        # 2. The services of AWS, and the issuer of access tokens.
        self.key_arn, aws = services.start(self._running, self.state_dir, self.directory, invoke_loopback.url)
        access = authorization.start(self._running, self.auth, api_loopback.url, self.url, self.directory)
        self.issuer = access.issuer

        # 3. The environment variables: those of a deployment, and those that lead to the copies of AWS's services.
        name = self.directory.resolve().parent.name or "mcp-functions"
        settings = environment.settings(port=api_loopback.port, name=name, key_arn=self.key_arn) | access.settings
        endpoints = environment.CREDENTIALS | aws
        self._running.enter_context(environment.applied(settings | endpoints))
        own = self._running.enter_context(layered())
        self._template_variables = TemplateVariables(self.directory, settings | endpoints, shell, own)

        # 4. The functions, which can now call each other.
        run = self._start_processes(folders, settings, endpoints) if self.runtime else self._load_functions(folders)
        self._lambdas = Lambdas(folders, run, watcher=self.watcher, on_invocation=self.on_invocation)
        invoke_api = InvokeApi(self._lambdas)
        self._running.callback(invoke_api.drain)
        invoke_loopback.start(invoke_api.answer)

        # 5. The API for clients, and the page, which answers other routes.
        api = Api(self._lambdas, authorizer=access.authorizer, has_sign_in=self.auth == "oauth")
        page = Page(
            port=api_loopback.port,
            token=secrets.token_urlsafe(32),
            key_arn=self.key_arn,
            lambdas=self._lambdas,
            access=partial(authorization.make_token, self.issuer, self.directory),
            now=time.time,
        )
        api_loopback.start(lambda request: page.answer(request) or api.answer(request))
        self._running.callback(api_loopback.stop)  # stops first, so that no client calls while the rest stops

    def _find_folders(self) -> list[str]:
        folders = [app.parent.name for app in find(self.directory, self.skipped_folders)]
        if self.auth == "oauth" and SIGN_IN not in folders:
            stop(f"there is no {self.directory}/{SIGN_IN}/app.py, the sign-in front: mcp-functions auth oauth")
        return folders

    def _start_processes(self, folders: Sequence[str], settings: Variables, endpoints: Variables) -> Run:
        """Get the functions ready as processes; return what runs one of them."""
        launcher = Launcher(
            directory=self.directory,
            settings=settings,
            endpoints=endpoints,
            on_log=self.on_log,
            watcher=self.watcher,
            watchdog=self._running.enter_context(contextlib.closing(Watchdog())),
        )
        launcher.configure(folders)
        self._fleet = self._running.enter_context(Fleet(launcher, reuse=self.reuse))
        self._template_variables.load(folders)
        return self._fleet.run

    def _load_functions(self, folders: Sequence[str]) -> Run:
        """Load the functions into this process; return what runs one of them."""
        for line in self._template_variables.load(folders):
            self.on_log("template", line)
        return InProcess(self._loaded.by_folder, debug=self.debug, watcher=self.watcher).run

    @cached_property
    def _loaded(self) -> Functions:
        return self._running.enter_context(Functions(self.directory, without=self.skipped_folders))
