"""The two ways to deploy handlers: one Lambda that is asked directly, or the front door with that Lambda behind it."""

from __future__ import annotations

import io
import json
import os
import time
from typing import TYPE_CHECKING, Any

from mcp_functions import dialects, serve, settings
from mcp_functions.front_door import FrontDoor
from mcp_functions.handlers import catalog, lookup
from mcp_functions.http.exchange import Endpoint
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.legacy import LegacyServer, ModernServer
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.handlers.base import Handler

PLACEMENTS = ["direct", "behind the front door"]
FOLDER = "all"


class Lambdas:
    """Lambda's Invoke API, in one process: a payload goes in as JSON and comes out as JSON."""

    def __init__(self, **functions: LambdaFunction) -> None:
        self._functions = functions
        self.invoked: list[str] = []

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's names
        """Run the function of this physical name."""
        self.invoked.append(FunctionName)
        function = self._functions[FunctionName.removeprefix("local_")]
        response = function(json.loads(Payload), wire.Context(FunctionName))
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(response).encode())}


def place(placement: str, *handlers: Handler[..., Any], now: Callable[[], float] = time.time) -> LambdaFunction:
    """Deploy handlers, in one of `PLACEMENTS`, and return what clients reach."""
    function = serve(*handlers, now=now)
    if placement == "direct":
        return function
    offered = catalog.build(handlers, FOLDER)

    def wire_up(_name: str, now: Callable[[], float]) -> Endpoint:
        found = settings.read(os.environ)
        door = FrontDoor(offered, found, lambda: Lambdas(all=function), None, now=now)
        earlier = LegacyServer(found, ModernServer(door.answer, offered), None, now=now)
        endpoint = Endpoint(found, door.answer, header_parameters=lookup.header_names(offered), handle_legacy=earlier)
        return dialects.add_to_front_door(endpoint, offered, door.forward) if found.dialects else endpoint

    return LambdaFunction(wire_up, handlers, now=now)
