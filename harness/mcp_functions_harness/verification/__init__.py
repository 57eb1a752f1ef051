"""`mcp-functions verify`: says whether a server that was just deployed works. It changes nothing on AWS.

    ok       endpoint: https://…/mcp answers; mode none, everybody may call
    FAILED   lists: the endpoint differs from the catalog (tool add)
    skipped  alarms: needs AWS: name the stack instead of its URL

A check is a function that returns the text of an `ok`, or raises `Failed` or `Skipped`. The mode ("none", "iam", "jwt"
or "oauth") says how the API knows who calls.
"""

import time
from collections.abc import Iterator

from mcp_functions.protocol.catalog_types import Catalog
from mcp_functions_harness import catalog
from mcp_functions_harness.verification import lists, routes
from mcp_functions_harness.verification.calls import Calls
from mcp_functions_harness.verification.options import Options
from mcp_functions_harness.verification.report import Failed, Line, run
from mcp_functions_harness.verification.server import Server, make_session
from mcp_functions_harness.verification.stack import Stack

SCHEMES = ("http://", "https://")
CHECKS_WITH_CREDENTIALS = ("lists", "functions", "conversation", "task")
CHECKS_ON_AWS = ("stack", "logs", "alarms")
NEEDS_STACK = "needs AWS: name the stack instead of its URL"


def verify(target: str, options: Options) -> Iterator[Line]:
    """Check a server, by the URL of its endpoint or the name of its stack; yield one line per check.

    Raises:
        Problem: the stack cannot be read.
    """
    session = make_session(options)
    stack = None if target.startswith(SCHEMES) else Stack(target, session)
    url = stack.endpoint if stack else target.rstrip("/")
    began = time.time()
    endpoint = Server(url, token=options["token"], session=session)
    try:
        endpoint.find_mode()
    except Failed as failed:
        yield Line("FAILED", "endpoint", str(failed))
        return
    project = catalog.read(options["functions"])
    endpoint_line = run("endpoint", routes.check_endpoint, endpoint)
    yield endpoint_line
    yield run("closed routes", routes.check_closed, endpoint, options["auth"], lists.folders(project))
    yield run("open routes", _check_open, endpoint, stack, options)
    yield from _with_credentials(endpoint, project, options, endpoint_line)
    if stack:
        yield run("stack", stack.check, endpoint.mode)
        yield run("logs", stack.check_logs, endpoint.request_id, began, options["seconds"])
        yield run("alarms", stack.check_alarms)
    else:
        yield from (Line("skipped", name, NEEDS_STACK) for name in CHECKS_ON_AWS)


def _with_credentials(endpoint: Server, project: Catalog, options: Options, endpoint_line: Line) -> Iterator[Line]:
    if endpoint_line.outcome == "ok":
        calls = Calls(endpoint, project, options)
        yield run("lists", lists.check_lists, endpoint, project)
        yield run("functions", lists.check_functions, endpoint, project)
        yield run("conversation", calls.check_conversation)
        yield run("task", calls.check_task)
    else:
        is_skipped = endpoint_line.outcome == "skipped"
        reason = endpoint_line.text if is_skipped else "the endpoint refuses your credentials"
        yield from (Line("skipped", name, reason) for name in CHECKS_WITH_CREDENTIALS)


def _check_open(endpoint: Server, stack: Stack | None, options: Options) -> str:
    """Check the open routes, with the origins and the URL of the stack where the user names none."""
    origins = options["origins"]
    resource = endpoint.url
    if stack:
        lists_of_origins = stack.variables("MCP_ALLOWED_ORIGINS")
        allowed = {origin.strip() for text in lists_of_origins for origin in text.split(",")}
        origins = origins or sorted(allowed - {""})
        resource = min(stack.variables("MCP_RESOURCE_URL") or {endpoint.url})
    return routes.check_open(endpoint, resource, origins)
