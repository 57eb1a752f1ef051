"""The two ways to deploy handlers: clients call their Lambda directly, or a front door that forwards to the Lambda."""

from __future__ import annotations

import io
import json
import os
import time
from typing import TYPE_CHECKING, Any

from mcp_functions import serve, settings
from mcp_functions.assembly import Parts, assemble
from mcp_functions.front_door import FrontDoor
from mcp_functions.handlers import catalog
from mcp_functions.http.gateway import LambdaFunction
from mcp_functions.protocol.constants import ENDPOINT_FOLDER
from tests.support import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.handlers.base import Handler
    from mcp_functions.http.exchange import Endpoint

PLACEMENTS = ["direct", "behind the front door"]
FOLDER = "all"


class Lambdas:
    """Lambda's client of boto3, for functions in this process; payload and response are JSON, as on AWS."""

    def __init__(self, **functions: LambdaFunction) -> None:
        self._functions = functions
        self.invoked: list[str] = []

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803 - boto3's names
        """Run the function with this name in AWS, "local_<folder>"."""
        self.invoked.append(FunctionName)
        function = self._functions[FunctionName.removeprefix("local_")]
        response = function(json.loads(Payload), wire.Context(FunctionName))
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(response).encode())}


def place(placement: str, *handlers: Handler[..., Any], now: Callable[[], float] = time.time) -> LambdaFunction:
    """Deploy handlers in one of `PLACEMENTS`; return the function that clients call."""
    function = serve(*handlers, now=now)
    if placement == "direct":
        return function
    listed = catalog.build(handlers, FOLDER)

    def make_endpoint(_name: str, now: Callable[[], float]) -> Endpoint:
        values = settings.Settings(os.environ)
        front_door = FrontDoor(listed, values, lambda: Lambdas(all=function), now=now)
        return assemble(Parts(values, ENDPOINT_FOLDER, now), front_door)

    return LambdaFunction(make_endpoint, handlers, now=now)
