"""The front door: the MCP endpoint of a server whose tools, prompts and resources are separate Lambda functions.

A client knows one URL, which is that of the front door. A request takes one of two ways:

    server/discover, lists        answered here, from catalog.json, which describes all handlers
    calls, completions, tasks     forwarded, with the event unchanged, to the function that has the handler

A function checks a forwarded request again, as if it came from the client. A call that takes several requests has a
state, which the client returns with each of them. Only the function that sealed (encrypted) the state can open it.

A client of 2025 uses an earlier revision of the protocol, which `mcp_functions.legacy` translates. That revision has
sessions, and questions that wait for an answer. To seal these, the front door needs a key where such clients may call.
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
from mcp_functions.protocol.constants import APP_FORM_URI, CALL_METHODS, TASK_METHODS
from mcp_functions.protocol.errors import FunctionStopped
from mcp_functions.settings import read as read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_functions.legacy import LegacyServer
    from mcp_functions.observability.lines import Logger
    from mcp_functions.protocol.messages import ForwardedResponse, Request, Result
    from mcp_functions.protocol.wire_types import Model, ServerInfo
    from mcp_functions.settings import Settings


def serve_catalog(
    path: str | os.PathLike[str],
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
    # This loads what the first call of another function needs, because Lambda gives a full CPU at init.
    aws.prepare(aws.find_endpoint(os.environ, "lambda"))

    def make_endpoint(function_name: str, clock: Callable[[], float]) -> Endpoint:
        """Make the endpoint at the first event; `clock` is `now`, or a test's own."""
        settings = read_settings(os.environ)
        identity.warn_if_open(settings)
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - importing pathlib makes the start a fifth slower
            catalog = json.load(file)
        client = forwarding.CachedClient(forwarding.lambda_client)
        return FrontDoor(catalog, settings, client, about, now=clock).endpoint(settings.folder(function_name))

    return LambdaFunction(make_endpoint, now=now, logger=logger)


class FrontDoor:
    """Answers lists from a catalog, and forwards every other request to a function that the catalog names."""

    def __init__(
        self,
        catalog: Mapping[str, Any],
        settings: Settings,
        client: Callable[[], forwarding.LambdaClient],
        about: Mapping[str, Any] | None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Keep what the requests need; nothing is called.

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
        """Make the endpoint, which checks each HTTP request before `answer` gets it.

        Three of its parts depend on the settings:

            documents         the metadata of OAuth, if callers have access tokens (MCP_AUTH_MODE)
            handle_legacy     responds to clients of 2025, if they are allowed (MCP_EARLIER_REVISIONS)
            dialects          translate the messages of proposals for the protocol (MCP_DIALECTS)

        Args:
            folder: the folder of the front door's own function, without the stack's name.
        """
        settings = self._settings
        handle_legacy = lazy_function(lambda: self._make_legacy_server(folder))
        endpoint = Endpoint(
            settings,
            self.answer,
            documents=metadata.documents(settings, self._catalog.get("scopes", ())),
            header_parameters=lookup.cors_headers(self._catalog, settings),
            is_stopped=folder in settings.stopped_functions,
            handle_legacy=handle_legacy if settings.earlier_revisions else None,
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
        if method == "resources/read" and params.get("uri") == APP_FORM_URI and catalog.get("asks"):
            # A host of MCP Apps reads the page that shows the questions of tools; it is the same for every tool.
            return lookup.form_result(self._settings.server_info)
        if method in TASK_METHODS and catalog.get("tasks"):
            headers.check_task_id(request.message, request.headers)
            request.require_tasks_extension()
            return self.forward(lookup.task_function(catalog, method, params), request)
        if method in CALL_METHODS:
            target = lookup.find(catalog, method, params)
        elif method == "completion/complete":
            target = lookup.find_reference(catalog, params)
        else:
            return self._lists.answer(method, params)
        observability.current().handler = lookup.name_of(catalog, target)
        # A companion is a second tool that takes the answers for a tool that asks. No header repeats its arguments.
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
        seconds = request.gateway_deadline - self._now()
        began = time.perf_counter()
        try:
            return forwarding.forward(self._client, name, request.event, seconds=seconds)
        finally:
            observability.current().forward_seconds = time.perf_counter() - began

    def _make_legacy_server(self, folder: str) -> LegacyServer:
        """Make the server for clients of 2025, at the first request of one. Other clients never need these modules."""
        from mcp_functions.dispatch.seal_factory import SealFactory  # noqa: PLC0415
        from mcp_functions.legacy import LegacyServer, ModernServer  # noqa: PLC0415

        settings = self._settings
        modern = ModernServer(self.answer, self._catalog, forwards=True)
        seals = None
        if settings.kms_keys:
            seals = SealFactory(settings, f"{settings.stack}/{folder}", now=self._now)
        return LegacyServer(settings, modern, seals, now=self._now)
