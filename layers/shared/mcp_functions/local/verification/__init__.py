"""`mcp-functions verify`: says whether a server that was just deployed works. It changes nothing on AWS.

    ok       endpoint: https://…/mcp answers; mode none, everybody may call
    FAILED   lists: the endpoint differs from the catalog (tool add)
    skipped  alarms: needs AWS: name the stack instead of its URL

A check is a function that returns the text of an `ok`, or raises `Failed` or `Skipped`. The mode ("none", "iam", "jwt"
or "oauth") says how the API knows who calls.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from mcp_functions.local import catalog
from mcp_functions.local.verification import lists, monitoring, report, routes, server
from mcp_functions.local.verification.calls import Calls
from mcp_functions.local.verification.report import Patience
from mcp_functions.local.verification.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import boto3

    from mcp_functions.local.verification.report import Line
    from mcp_functions.settings import AuthMode

__all__ = ["Options", "Patience", "verify"]

SCHEMES = ("http://", "https://")
NEEDS_STACK = "needs AWS: name the stack instead of its URL"


class Choices(TypedDict):
    """The options that the command line gives as they are."""

    functions: Path  # the folder with the project's functions and catalog
    token: str | None  # an access token, in the modes jwt and oauth
    auth: str | None  # the mode that the user expects; None: any
    origins: Sequence[str]  # the origins of web pages that may call
    region: str | None  # the AWS Region; None: as the AWS CLI decides
    profile: str | None  # the profile of the AWS configuration; None: as the AWS CLI decides


class Options(Choices):
    """The options of the user."""

    named_tools: Sequence[tuple[str, Mapping[str, Any]]]  # tools that may be called, with their arguments
    answers: Mapping[str, Any]  # by a question's key: the content of its form, "decline" or "cancel"
    patience: Patience  # how long to wait for one task, and for a line in the log


def verify(target: str, options: Options) -> Iterator[Line]:
    """Check a server; yield one line per check.

    Args:
        target: the URL of its endpoint, or the name of its stack.
        options: the options of the user.

    Raises:
        Problem: the stack cannot be read.
    """
    session = server.session(options["region"], options["profile"])
    stack = None if target.startswith(SCHEMES) else Stack(target, session)
    url = stack.endpoint if stack else target.rstrip("/")
    return _lines(url, stack, session, options)


def _lines(url: str, stack: Stack | None, session: boto3.Session, options: Options) -> Iterator[Line]:
    began = options["patience"].now()
    try:
        endpoint, mode = server.connect(url, options["token"], session)
    except report.Failed as failed:
        yield report.Line("FAILED", "endpoint", str(failed))
        return
    project = catalog.read(options["functions"])
    endpoint_line = report.run("endpoint", partial(routes.check_endpoint, endpoint, mode))
    yield endpoint_line
    folders = lists.folders(project)
    yield report.run("closed routes", partial(routes.check_closed, endpoint, mode, options["auth"], folders))
    yield report.run("open routes", partial(_check_open, endpoint, mode, stack, options))
    reason = endpoint_line.text if endpoint_line.outcome == "skipped" else "the endpoint refuses your credentials"
    for name, check in _conversations(endpoint, project, options).items():
        if endpoint_line.outcome == "ok":
            yield report.run(name, check)
        else:
            yield report.Line("skipped", name, reason)
    if stack is None:
        for name in ("stack", "logs", "alarms"):
            yield report.Line("skipped", name, NEEDS_STACK)
        return
    watch = monitoring.Monitoring(stack, options["patience"])
    yield report.run("stack", partial(stack.check, mode))
    yield report.run("logs", partial(watch.check_logs, endpoint.request_id, began))
    yield report.run("alarms", watch.check_alarms)


def _check_open(endpoint: server.Server, mode: AuthMode, stack: Stack | None, options: Options) -> str:
    """Check the open routes, with the origins and the URL of the stack where the user names none."""
    origins = options["origins"]
    resource = endpoint.url
    if stack:
        origins = origins or _allowed_origins(stack)
        resource = min(stack.variables("MCP_RESOURCE_URL") or {endpoint.url})
    return routes.check_open(endpoint, mode, resource, origins)


def _allowed_origins(stack: Stack) -> list[str]:
    """Return the origins that the functions of a stack allow."""
    lists = stack.variables("MCP_ALLOWED_ORIGINS")
    origins = {origin.strip() for comma_separated in lists for origin in comma_separated.split(",")}
    return sorted(origins - {""})


def _conversations(endpoint: server.Server, project: lists.Catalog, options: Options) -> dict[str, Callable[[], str]]:
    """Return the checks that need the user's credentials, by name."""
    tools: Mapping[str, str] = project.get("functions", {}).get("tools", {})
    tasks = [name for name, folder in tools.items() if folder in project.get("tasks", ())]
    calls = Calls(endpoint, options["named_tools"], options["answers"], tasks, options["patience"])
    return {
        "lists": partial(lists.check_lists, endpoint, project),
        "functions": partial(lists.check_functions, endpoint, project),
        "conversation": calls.check_conversation,
        "task": calls.check_task,
    }
