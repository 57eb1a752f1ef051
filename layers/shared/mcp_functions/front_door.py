"""The front door is the MCP endpoint of a server whose tools, prompts and resources are separate Lambda functions.

    client  ->  API Gateway  ->  front door  ->  function `booking`, with the tool "book"
                                             ->  function `notes`, with the resource "notes://today"

A client knows only the URL of the front door, which does one of two things with a request:

    server/discover, lists        it answers them from catalog.json, which describes all handlers
    calls, completions, tasks     it forwards the event, without credentials, to the function that has the handler

The function checks a forwarded request again, as if it came from the client.

A client of 2025 uses an earlier revision of the protocol, which `mcp_functions.legacy` translates. That revision has
sessions, and questions that wait for an answer. The front door needs a KMS key to seal (encrypt) these.
"""

from __future__ import annotations

import json
import os
import time
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from mcp_functions import aws, observability
from mcp_functions.handlers import lists, lookup
from mcp_functions.handlers.catalog import describe_server
from mcp_functions.http import forwarding, identity
from mcp_functions.http.events import folder_of
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol import headers
from mcp_functions.protocol.constants import CALL_METHODS, ENDPOINT_FOLDER, TASK_METHODS
from mcp_functions.protocol.errors import FunctionStopped
from mcp_functions.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.http.events import HttpRequest, Response
    from mcp_functions.http.gateway import Clock
    from mcp_functions.legacy import LegacyServer
    from mcp_functions.observability.lines import Logger
    from mcp_functions.protocol.messages import AnyResult, ForwardedResponse, Request
    from mcp_functions.protocol.wire_types import Model, ServerInfo
    from mcp_functions.skills import Skills


def serve_catalog(
    path: str | os.PathLike[str],
    *,
    instructions: str | None = None,
    server_info: ServerInfo | Model | None = None,
    logger: Logger | None = None,
    now: Clock = time.time,
) -> LambdaFunction:
    """Make the Lambda entry point of the front door.

    Args:
        path: catalog.json, written by `python -m mcp_functions_harness catalog`.
        instructions: a text that tells a model how to use the whole server.
        server_info: title, description, website and icons of the server.
        logger: writes the line of each request, as in `serve`.
        now: the clock, unix seconds.

    Returns:
        The function that the template names with `Handler: app.handler`.
    """
    description = describe_server(instructions, server_info)
    aws.prepare("lambda")

    def make_endpoint(function_name: str, now: Clock) -> Endpoint:
        """Make the endpoint at the first event, with the settings of the environment."""
        settings = Settings(os.environ)
        identity.warn_if_open(settings)  # writes a warning if anybody may call
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - importing pathlib makes the start a fifth slower
            catalog = {**json.load(file), "endpoint": description}
        folder = folder_of(function_name, settings)
        client = forwarding.CachedClient(forwarding.lambda_client)
        front_door = FrontDoor(catalog, settings, client, folder, now=now)
        if "hidden" in catalog:
            from mcp_functions import visibility  # noqa: PLC0415 - few deployments hide anything

            def answer_of(shown: Mapping[str, Any]) -> Callable[[Request], AnyResult]:
                return FrontDoor(shown, settings, client, folder, now=now).answer

            front_door.answer_modern = visibility.PerCaller(catalog, settings, answer_of).answer
        if catalog.get("skills"):
            beside = os.path.join(os.path.dirname(path), "skills.json")  # noqa: PTH118, PTH120 - without pathlib, as above
            front_door.answer_modern = _with_skills(beside, catalog, settings, front_door.answer_modern)
        answer_legacy = front_door.answer_legacy if settings.earlier_revisions else None
        endpoint = Endpoint(settings, front_door.answer_modern, catalog, folder, answer_legacy=answer_legacy)
        if settings.dialects:
            from mcp_functions import dialects  # noqa: PLC0415 - few deployments have one

            loaded = dialects.load(settings.dialects)
            translator = dialects.FrontDoorDialects(loaded, catalog, front_door.answer_modern, front_door.forward)
            endpoint = endpoint._replace(answer=translator.answer, continue_dialect=translator.continue_call)
        return endpoint

    return LambdaFunction(make_endpoint, now=now, logger=logger)


def _with_skills(
    file: str, catalog: Mapping[str, Any], settings: Settings, answer_other: Callable[[Request], AnyResult]
) -> Callable[[Request], AnyResult]:
    """Return what answers requests about skills from a file, and all others with `answer_other`."""

    @cache
    def skills() -> Skills:
        """Load the skills when a client first asks for one. No other request needs their modules."""
        from mcp_functions.skills import Bundle, Skills  # noqa: PLC0415

        return Skills(Bundle(file), catalog, settings, answer_other)

    def answer(request: Request) -> AnyResult:
        is_about_skills = lookup.asks_for_skill(request.method, request.params)
        return skills().answer(request) if is_about_skills else answer_other(request)

    return answer


class FrontDoor:
    """Answers discovery and lists from a catalog, and forwards every other request to a function of the catalog."""

    def __init__(
        self,
        catalog: Mapping[str, Any],
        settings: Settings,
        get_client: Callable[[], Any],
        folder: str = ENDPOINT_FOLDER,
        *,
        now: Clock = time.time,
    ) -> None:
        """Keep what the requests need; nothing is called.

        Args:
            catalog: the content of catalog.json; its member "endpoint", if any, describes the front door (`Lists`).
            settings: the settings of the deployment.
            get_client: returns the client that invokes Lambda functions.
            folder: the folder of the front door.
            now: the clock, unix seconds.
        """
        self._catalog = catalog
        self._settings = settings
        self._get_client = get_client
        self._folder = folder
        self._now = now
        self._lists = lists.Lists(catalog, settings)
        # What answers requests also for clients of 2025: `answer`, unless a feature is wired around it.
        self.answer_modern: Callable[[Request], AnyResult] = self.answer

    def answer(self, request: Request) -> AnyResult:
        """Answer discovery and lists, and forward every other request to the function that serves it.

        Raises:
            McpError: the request names no handler of the catalog, or the function could not be called.
        """
        method = request.method
        params = request.params
        if method in CALL_METHODS or method == "completion/complete":
            return self._answer_call(request)
        if method in TASK_METHODS and self._catalog.get("tasks"):
            headers.check_task_id(request.message, request.headers)
            request.require_tasks_extension()
            return self.forward(lookup.task_function(self._catalog, method, params), request)
        methods: Mapping[str, str] = self._catalog.get("methods", {})  # of the extensions of adopted servers
        if method in methods:
            return self.forward(methods[method], request)
        return self._lists.answer(method, params)  # refuses a method that no function has

    def answer_legacy(self, http: HttpRequest) -> Response | None:
        """Respond to a client of 2025; None if the request is from another client."""
        return self._legacy_server(http)

    @cached_property
    def _legacy_server(self) -> LegacyServer:
        """The server for clients of 2025, made when the first of them calls. No other client needs its modules."""
        from mcp_functions.dispatch.seal_factory import SealFactory  # noqa: PLC0415
        from mcp_functions.legacy import LegacyServer  # noqa: PLC0415

        service = f"{self._settings.stack}/{self._folder}"  # only this function can open what it seals
        seals = SealFactory(self._settings, service, now=self._now) if self._settings.kms_keys else None
        return LegacyServer(self._settings, self.answer_modern, self._catalog, seals, now=self._now)

    def _answer_call(self, request: Request) -> AnyResult:
        """Forward a call or a completion, unless one of its headers differs from its arguments."""
        if lookup.asks_for_form(self._catalog, request.method, request.params):
            # The page in which apps show questions is the same for all tools.
            return lookup.form_result(self._settings.server_info)
        if request.method == "completion/complete":
            target = lookup.find_reference(self._catalog, request.params)
        else:
            target = lookup.find(self._catalog, request.method, request.params)
        observability.current().handler = lookup.name_of(self._catalog, target)
        # An answer tool takes the user's answers for a tool. No header repeats its arguments.
        if request.method == "tools/call" and not target.answer_tool:
            repeated = lookup.header_arguments(self._catalog, target.key)
            lookup.check_headers(repeated, request.params, request.headers)
        return self.forward(target.folder, request)

    def forward(self, function: str, request: Request) -> ForwardedResponse:
        """Forward the event of a request, which `legacy` may translate, to the function with this folder.

        Raises:
            FunctionStopped: the operator stopped the function (MCP_STOPPED_FUNCTIONS).
            McpError: the function could not be called, or did not respond in time.
        """
        if function in self._settings.stopped_functions:
            raise FunctionStopped
        name = f"{self._settings.stack}_{function}{self._settings.qualifier}"
        event = request.event
        if request.is_of_2025:
            from mcp_functions.legacy import forwardable_event  # noqa: PLC0415 - no other client needs it

            event = forwardable_event(request)
        seconds = request.gateway_deadline - self._now()  # until API Gateway ends the client's request
        began = time.perf_counter()
        try:
            return forwarding.forward(self._get_client, name, event, seconds=seconds)
        finally:
            observability.current().forward_seconds = time.perf_counter() - began
