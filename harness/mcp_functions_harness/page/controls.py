"""What the page's scripts ask of the harness. Each control takes a JSON object, and returns one.

access        {}                   an access token for the page's calls
executions    {"request": "…"}     which functions ran for a request, and how long
start         {}                   the URL, how clients connect, and which handlers may ask their user
open          {"state": "…", …}    what is in an encrypted state, and why a server would refuse it

A request with a missing or wrong member raises a Problem.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_functions.protocol.constants import CALL_METHODS
from mcp_functions.rounds.record import RecordedStep
from mcp_functions.seal.kms import KmsKey
from mcp_functions_harness import banner
from mcp_functions_harness.authorization import make_token
from mcp_functions_harness.inspection.claims_check import ON_REQUEST
from mcp_functions_harness.inspection.explain import explain
from mcp_functions_harness.inspection.key_source import KeySource, local_scope
from mcp_functions_harness.inspection.texts import WHY
from mcp_functions_harness.issuer import Issuer
from mcp_functions_harness.lambdas.functions import Function
from mcp_functions_harness.lambdas.service import Lambdas
from mcp_functions_harness.problems import Problem

Control = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(eq=False, kw_only=True)
class Controls:
    """The controls of one harness."""

    key_arn: str  # of the harness's own key, the only one that opens states here
    lambdas: Lambdas  # the functions, and the records of their invocations
    issuer: Issuer | None  # makes access tokens; None if the server wants no token
    directory: Path  # of the functions' folders; a token of the page has the scopes that these need
    url: str  # of the endpoint
    functions: Callable[[], Mapping[str, Function]]  # returns the loaded functions by folder

    @property
    def by_name(self) -> dict[str, Control]:
        """Each control by its name in the URL."""
        return {"access": self._access, "executions": self._executions, "open": self._open, "start": self._start}

    def _access(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        return {"access": make_token(self.issuer, self.directory)}

    def _start(self, _request: Mapping[str, Any]) -> dict[str, Any]:
        handlers = [handler for function in self.functions().values() for handler in function.handlers]
        asking = sorted({str(handler.key) for handler in handlers if handler.needs_state})
        return {"url": self.url, "clients": banner.clients(self.url), "asking": asking}

    def _executions(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """List the invocations for one HTTP request, which API Gateway's id names."""
        http_request_id = _read_string(request, "request")
        executions = [
            {
                "folder": invocation.folder,
                "requestId": invocation.request_id,
                "milliseconds": round(invocation.milliseconds, 1),
                "error": invocation.error,
                "traceback": invocation.traceback,
                "initMilliseconds": invocation.init_milliseconds,
                "memoryMb": invocation.memory_mb,
            }
            for invocation in self.lambdas.invocations
            if invocation.http_request_id == http_request_id
        ]
        return {"executions": executions}

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Decrypt a state, like `mcp-functions open`, with the harness's own key and no other.

        Beside the state, the request has what is known of the one that sent it: `method`, `target` (a name or a URI),
        `arguments` and `function` (a folder). Only with `values: true` the result has the user's answers.
        """
        if "target" in request:
            _read_string(request, "target")
        if "method" in request and _read_string(request, "method") not in CALL_METHODS:
            raise Problem(f"method must be one of {', '.join(CALL_METHODS)}")
        sent: Any = {name: request[name] for name in ("method", "target", "arguments") if name in request}
        # Each function seals its own states, so all are tried; first the function that the request names.
        function = request.get("function")
        folders = sorted(self.lambdas.folders, key=lambda folder: (folder != function, folder))
        keys = KeySource([KmsKey(self.key_arn)], [local_scope(folder) for folder in folders], None)
        explanation = explain(_read_string(request, "state"), keys, sent, now=time.time())
        steps = (explanation.record or {}).get("steps", {})
        return {
            # Without the lines that only name what `record` shows.
            "lines": [line for line in explanation.lines if ON_REQUEST not in line],
            "reasons": [{"reason": reason, "why": WHY.get(reason, "")} for reason in explanation.reasons],
            "steps": [{"key": key, "milliseconds": RecordedStep(*step).milliseconds} for key, step in steps.items()],
            "record": explanation.record if request.get("values") is True else None,
        }


def _read_string(request: Mapping[str, Any], name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str):
        raise Problem(f"{name} must be a string")
    return value
