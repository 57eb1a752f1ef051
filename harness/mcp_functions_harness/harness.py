"""Runs the functions of a project on this machine, behind copies of API Gateway, Lambda, KMS and DynamoDB.

    with Harness(Path("functions")) as harness:
        print(harness.url)  # the URL of the MCP server, for any client

A request takes this way:

    client -> Api: routes and authorizer -> Lambdas: records the invocation -> InProcess: runs the function here
                                            ^                               or Fleet: runs it in another process
                                            |               or OwnEndpoint, if there is no functions/mcp
                                            InvokeApi: one function calls another
"""

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Self

from mcp_functions_harness import authorization, catalog, environment, services
from mcp_functions_harness.api_gateway.api import MAX_BODY, Api
from mcp_functions_harness.api_gateway.authorizer import JwtAuthorizer
from mcp_functions_harness.authorization import LocalAuthMode
from mcp_functions_harness.environment import Variables
from mcp_functions_harness.issuer import Issuer
from mcp_functions_harness.lambdas.functions import FRONT_DOOR, SIGN_IN, Function, Functions, find
from mcp_functions_harness.lambdas.in_process import InProcess
from mcp_functions_harness.lambdas.invoke_api import InvokeApi
from mcp_functions_harness.lambdas.own_variables import SetOwn, separated
from mcp_functions_harness.lambdas.service import MAX_PAYLOAD, Invocation, Lambdas, Outcome, Run, Watcher
from mcp_functions_harness.loopback import Loopback
from mcp_functions_harness.own_endpoint import OwnEndpoint
from mcp_functions_harness.page.controls import Controls
from mcp_functions_harness.page.routes import Page
from mcp_functions_harness.problems import Problem
from mcp_functions_harness.runtime.configuration import Configurations
from mcp_functions_harness.runtime.fleet import Fleet
from mcp_functions_harness.runtime.launcher import Launcher
from mcp_functions_harness.runtime.watchdog import Watchdog

STATE_DIR = Path(".mcp-functions")


def _write_to_stderr(folder: str, line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # the reader of stderr may have ended
        sys.stderr.write(f"{folder}  {line}\n")


TEMPLATE_LINES = "template"  # stands in the place of a function in lines about template.yaml


@dataclass(eq=False)
class Harness:
    """API Gateway, Lambda, KMS and DynamoDB for one directory of functions, from the start of its block to the end.

    A harness changes the environment variables of the whole process, so only one can run at a time.

    Attributes:
        directory: contains a folder for each function.
        port: the port for clients; 0 for any free port.
        state_dir: keeps the KMS key and the table between runs.
        auth: who may call, like the AuthMode of a deployment:
            "none": everybody.
            "jwt": clients with an access token. A local issuer gives one to every client.
            "oauth": clients whose user has signed in at functions/oauth, the sign-in front before that issuer.
        runtime: whether functions run in processes of the real Lambda runtime. Otherwise they run in this process.
        reuse: with `runtime`, whether a process takes a second invocation.
        debug: without `runtime`, whether tracebacks of functions include the toolkit's own frames.
        on_log: called with a function's folder and one line of its log, or with "template" and one line about
            template.yaml. The default writes to stderr.
        on_invocation: called after every invocation of a function.
        watcher: shows an author each call that has ended, and the progress of calls. With a watcher and `runtime`, the
            processes also log whole tracebacks, which they do not on Lambda.

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
    _running: ExitStack = field(default_factory=ExitStack, init=False)  # stops everything
    _fleet: Fleet | None = field(default=None, init=False)  # None without `runtime`
    _loaded: Functions | None = field(default=None, init=False)  # None until needed
    # These exist while the block runs.
    _folders: Sequence[str] = field(init=False)  # of the functions that are configured
    _lambdas: Lambdas = field(init=False)
    _run_function: Run = field(init=False)
    _own_endpoint: OwnEndpoint = field(init=False)
    _run_own_endpoint: Run = field(init=False)
    _set_own_variables: SetOwn = field(init=False)  # of the functions in this process
    _harness_values: Variables = field(init=False)  # what the template does not decide
    _shell: Mapping[str, str] = field(init=False)  # the developer's environment variables
    _missing_variables: Sequence[str] = field(init=False)  # those that only a deployment knows

    @property
    def functions(self) -> Mapping[str, Function]:
        """The functions by folder. With `runtime` they are loaded into this process when they are first asked for.

        Raises:
            Problem: a function does not load.
        """
        return self._load().by_folder

    @property
    def invocations(self) -> list[Invocation]:
        """The last calls of functions, in the order in which they ended."""
        return self._lambdas.invocations

    @property
    def skipped_folders(self) -> frozenset[str]:
        """The folders that are not served: without `auth="oauth"` the sign-in front."""
        return frozenset() if self.auth == "oauth" else frozenset({SIGN_IN})

    def configure(self, folders: Sequence[str]) -> list[str]:
        """Serve these folders, with the variables that template.yaml gives them now.

        Returns:
            A new line for each variable that only a deployment knows.

        Raises:
            Problem: the template cannot be read. The configuration before stays.
        """
        before = self._missing_variables
        self._configure(folders)
        self._lambdas.folders = {*folders, FRONT_DOOR}
        return [line for line in self._missing_variables if line not in before]

    def load(self, folder: str) -> None:
        """Load a function again. If it does not load, the version before stays.

        Raises:
            Problem: it does not load.
        """
        self._load().load(self.directory.resolve() / folder / "app.py")
        self._own_endpoint.forget()

    def unload(self, folder: str) -> None:
        """Remove a function whose folder is gone."""
        self._load().unload(folder)
        self._own_endpoint.forget()

    def forget_catalog(self) -> None:
        """Make the catalog of the own endpoint again at the next event, because a skill has changed."""
        self._own_endpoint.forget()

    def kill_only_process(self, folder: str) -> bool:
        """With `runtime`, kill the process that runs a request of a function or worker, if there is exactly one."""
        return self._fleet is not None and self._fleet.kill_only_process(folder)

    def __enter__(self) -> Self:
        """Start everything; a `Problem` says what the user has to correct first."""
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
        """Start all parts, each before the parts that need it. `_running` stops them in the opposite order."""
        folders = self._find_folders()  # first: a wrong directory is the most frequent mistake
        self._loaded = None  # those of an earlier run of this harness are closed
        self._shell = dict(os.environ)  # before `_set_variables` changes it
        # The other parts must know the addresses; requests are answered there later.
        api_loopback = self._running.enter_context(Loopback(port=self.port, max_body=MAX_BODY))
        invoke_loopback = self._running.enter_context(Loopback(max_body=2 * MAX_PAYLOAD))
        self.url = f"{api_loopback.url}/{FRONT_DOOR}"
        self.key_arn, aws = services.start(self._running, self.state_dir, self.directory, invoke_loopback.url)
        access = authorization.start(self._running, self.auth, api_loopback.url, self.url, self.directory)
        self.issuer = access.issuer
        name = self.directory.resolve().parent.name or "mcp-functions"
        settings = environment.settings(port=api_loopback.port, name=name, key_arn=self.key_arn) | access.settings
        endpoints = environment.CREDENTIALS | aws
        self._set_variables(settings | endpoints)
        self._start_functions(folders, settings, endpoints, invoke_loopback)
        self._start_api(api_loopback, access.authorizer)

    def _set_variables(self, variables: Variables) -> None:
        """Set the variables of a deployment, and those that lead AWS clients to the copies of AWS."""
        self._running.enter_context(environment.applied(variables))
        self._set_own_variables = self._running.enter_context(separated())
        self._harness_values = variables

    def _start_functions(
        self, folders: Sequence[str], settings: Variables, endpoints: Variables, invoke_loopback: Loopback
    ) -> None:
        """Configure the functions, which can call each other from now on."""
        if self.runtime:
            self._fleet = self._start_fleet(settings, endpoints)
        self._configure(folders)
        for line in self._missing_variables:
            self.on_log(TEMPLATE_LINES, line)
        in_process = partial(InProcess, debug=self.debug, watcher=self.watcher)
        self._run_function = self._fleet.run if self._fleet else in_process(self.functions).run
        self._own_endpoint = OwnEndpoint(self.state_dir / catalog.FILE, self.directory, lambda: self.functions)
        self._run_own_endpoint = in_process({FRONT_DOOR: Function(FRONT_DOOR, self._own_endpoint)}).run
        served = {*folders, FRONT_DOOR}
        self._lambdas = Lambdas(served, self._run, watcher=self.watcher, on_invocation=self.on_invocation)
        invoke_api = InvokeApi(self._lambdas)
        self._running.callback(invoke_api.drain)
        invoke_loopback.start(invoke_api.answer)

    def _start_api(self, api_loopback: Loopback, authorizer: JwtAuthorizer | None) -> None:
        """Start the API for clients, and the page for the developer's browser."""
        api = Api(self._lambdas, authorizer=authorizer, has_sign_in=self.auth == "oauth")
        controls = Controls(
            key_arn=self.key_arn,
            lambdas=self._lambdas,
            issuer=self.issuer,
            directory=self.directory,
            url=self.url,
            functions=lambda: self.functions,
        )
        page = Page(port=api_loopback.port, controls=controls)
        api_loopback.start(lambda request: page.answer(request) or api.answer(request))
        self._running.callback(api_loopback.stop)  # first: no client calls while the rest stops

    def _run(self, folder: str, event: bytes) -> Outcome:
        """Run a function; without functions/mcp, the harness's own endpoint takes its place."""
        there = self._folders if self._fleet else self.functions
        run = self._run_own_endpoint if folder == FRONT_DOOR and FRONT_DOOR not in there else self._run_function
        return run(folder, event)

    def _find_folders(self) -> list[str]:
        folders = [app.parent.name for app in find(self.directory, self.skipped_folders)]
        if self.auth == "oauth" and SIGN_IN not in folders:
            raise Problem(f"there is no {self.directory}/{SIGN_IN}/app.py, the sign-in front: mcp-functions auth oauth")
        return folders

    def _start_fleet(self, settings: Variables, endpoints: Variables) -> Fleet:
        launcher = Launcher(
            directory=self.directory,
            settings=settings,
            endpoints=endpoints,
            on_log=self.on_log,
            watcher=self.watcher,
            watchdog=self._running.enter_context(contextlib.closing(Watchdog())),
        )
        return self._running.enter_context(Fleet(launcher, reuse=self.reuse))

    def _configure(self, folders: Sequence[str]) -> None:
        """Read template.yaml, and give functions their configuration and their variables."""
        template = Configurations.beside(self.directory, self._harness_values, self._shell)
        if self._fleet:
            self._fleet.launcher.configure(folders, template)
        self._folders = folders
        variables: dict[str, dict[str, str]] = {}
        missing: list[str] = []
        if template:
            variables, missing = template.own_variables(self.directory, folders)
        self._set_own_variables(variables)
        self._missing_variables = list(dict.fromkeys(missing))  # each once

    def _load(self) -> Functions:
        """Load all functions into this process, if they are not loaded yet."""
        if self._loaded is None:
            self._loaded = self._running.enter_context(Functions(self.directory, without=self.skipped_folders))
        return self._loaded
