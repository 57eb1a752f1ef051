"""The MCP endpoint: an MCP client knows one URL, and behind it every handler is a separate Lambda.

    server/discover and the lists    the front door answers them from catalog.json, which describes every handler
    calls, completions, tasks        it forwards the event, unchanged, to the function that the validated body names

`FrontDoor.answer` shows the path of a request. The front door cannot open the `requestState` of a function, and the
function checks everything again. Clients of 2025 have sessions and pending questions, which the front door seals under
data keys of its own; no request of 2026-07-28 uses them.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from mcp_functions import aws, observability
from mcp_functions.handlers import lists, lookup
from mcp_functions.handlers.catalog import read_about
from mcp_functions.handlers.lazy_values import lazy_function
from mcp_functions.http import forwarding, identity, metadata
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol import headers
from mcp_functions.protocol.constants import APP_FORM, CALLS, TASKS
from mcp_functions.protocol.errors import FunctionStopped
from mcp_functions.settings import read as read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from mcp_functions.legacy import LegacyServer
    from mcp_functions.observability.lines import Logger
    from mcp_functions.protocol.messages import ForwardedResponse, Request, Result
    from mcp_functions.protocol.wire_types import Model, ServerInfo
    from mcp_functions.settings import Settings


def serve_catalog(
    path: str | PathLike[str],
    *,
    instructions: str | None = None,
    server_info: ServerInfo | Model | None = None,
    logger: Logger | None = None,
    now: Callable[[], float] = time.time,
) -> LambdaFunction:
    """Make the Lambda entry point of the MCP endpoint.

    Args:
        path: catalog.json, written by `python -m mcp_functions.local catalog`.
        instructions: tell a model how to use this server as a whole.
        server_info: title, description, website and icons of the server.
        logger: writes the line of each request, as in `serve`.
        now: the clock, unix seconds.
    """
    about = read_about(instructions, server_info)
    # The imports for a call to Lambda run now, because Lambda gives a full CPU at init.
    aws.prepare(aws.find_endpoint(os.environ, "lambda"))

    def make_endpoint(function_name: str, clock: Callable[[], float]) -> Endpoint:
        """Make the endpoint at the first event; `clock` is `now`, or a test's own."""
        settings = read_settings(os.environ)
        identity.warn_if_open(settings)
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a cold list would import a fifth more for pathlib
            catalog = json.load(file)
        client = forwarding.CachedClient(forwarding.lambda_client)
        return FrontDoor(catalog, settings, client, about, now=clock).endpoint(settings.folder(function_name))

    return LambdaFunction(make_endpoint, now=now, logger=logger)


class FrontDoor:
    """Answers from a catalog, and forwards calls to the functions that it names."""

    def __init__(
        self,
        catalog: Mapping[str, Any],
        settings: Settings,
        client: Callable[[], forwarding.LambdaClient],
        about: Mapping[str, Any] | None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Store the parts; nothing is called.

        Args:
            catalog: the content of catalog.json.
            settings: the settings of the deployment.
            client: returns the Lambda client, which it makes at the first call.
            about: the instructions and the `serverInfo` of the server as a whole.
            now: the clock of deadlines, unix seconds.
        """
        self._catalog = catalog
        self._settings = settings
        self._client = client
        self._now = now
        self._lists = lists.Lists(catalog, settings, about)

    def endpoint(self, folder: str) -> Endpoint:
        """Make the endpoint.

        The settings add these parts to it:

            documents         the metadata of OAuth, if callers have tokens (MCP_AUTH_MODE)
            handle_legacy     responds to clients of 2025 (MCP_EARLIER_REVISIONS)
            dialects          translate messages of proposals for the protocol (MCP_DIALECTS)

        Args:
            folder: the folder of the function of the front door, without the stack's name.
        """
        settings = self._settings
        legacy = lazy_function(lambda: self._legacy(folder))
        endpoint = Endpoint(
            settings,
            self.answer,
            is_stopped=folder in settings.stopped_functions,
            documents=metadata.documents(settings, self._catalog.get("scopes", ())),
            header_parameters=lookup.cors_headers(self._catalog, settings),
            handle_legacy=legacy if settings.earlier_revisions else None,
        )
        if not settings.dialects:
            return endpoint
        from mcp_functions import dialects  # noqa: PLC0415 - few deployments have one

        return dialects.add_to_front_door(endpoint, self._catalog, self.forward)

    def answer(self, request: Request) -> Result | ForwardedResponse:
        """Answer a list or discovery, and forward every other request to the function that it names."""
        catalog = self._catalog
        method = request.method
        params = request.params
        if method == "resources/read" and params.get("uri") == APP_FORM and catalog.get("asks"):
            # Hosts of MCP Apps read the page that shows questions; it is the same for every tool.
            return lookup.form_result(self._settings.server_info)
        if method in TASKS and catalog.get("tasks"):
            headers.check_task_id(request.message, request.headers)
            request.must_take_tasks()
            return self.forward(lookup.task_function(catalog, method, params), request)
        if method in CALLS:
            target = lookup.find(catalog, method, params)
        elif method == "completion/complete":
            target = lookup.find_reference(catalog, params)
        else:
            return self._lists.answer(method, params)
        observability.current().handler = lookup.name_of(catalog, target)
        # A companion is a tool that takes answers (`apps.companions`). Its call has no arguments of the tool itself.
        if method == "tools/call" and not target.companion:
            lookup.check_headers(lookup.header_arguments(catalog, target.key), params, request.headers)
        return self.forward(target.function, request)

    def forward(self, function: str, request: Request) -> ForwardedResponse:
        """Forward a request, unchanged, to a function of the catalog.

        Raises:
            FunctionStopped: the operator stopped that function.
        """
        if function in self._settings.stopped_functions:
            raise FunctionStopped
        name = f"{self._settings.function_name(function)}{self._settings.qualifier}"
        seconds = request.deadline - self._now()
        began = time.perf_counter()
        try:
            return forwarding.forward(self._client, name, request.event, seconds=seconds)
        finally:
            observability.current().forward_seconds = time.perf_counter() - began

    def _legacy(self, folder: str) -> LegacyServer:
        """Make the server for clients of 2025, at the first request of one."""
        from mcp_functions.dispatch.seal_factory import SealFactory  # noqa: PLC0415
        from mcp_functions.legacy import LegacyServer, ModernServer  # noqa: PLC0415 - clients of 2026-07-28 never need it

        settings = self._settings
        modern = ModernServer(self.answer, self._catalog, forwards=True)
        seals = None
        if settings.kms_keys:
            seals = SealFactory(settings, f"{settings.stack}/{folder}", now=self._now)
        return LegacyServer(settings, modern, seals, now=self._now)
