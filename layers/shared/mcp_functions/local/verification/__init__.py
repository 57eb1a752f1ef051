"""`mcp-functions verify`: says whether a server that was just deployed works. It changes nothing on AWS.

A check is a function that returns the text of its success, or raises `Failed` or `Skipped`; each gives one line. The
mode ("none", "iam", "jwt" or "oauth") says how the API knows who calls. The checks of the stack, its logs and its
alarms need AWS, so they are skipped for a URL.
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

__all__ = ["Options", "Patience", "verify"]

SCHEMES = ("http://", "https://")
NEEDS_STACK = "needs AWS: name the stack instead of its URL"


class Choices(TypedDict):
    """The options that are words of the command line as they are."""

    functions: Path  # the folder with the project's functions and catalog
    token: str | None  # an access token, in the modes jwt and oauth
    auth: str | None  # the mode that is meant
    origins: Sequence[str]  # whose pages may call
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
        endpoint, mode = server.reach(url, options["token"], session)
    except report.Failed as failed:
        yield report.Line("FAILED", "endpoint", str(failed))
        return
    project = catalog.read(options["functions"])
    endpoint_line = report.run("endpoint", partial(routes.check_endpoint, endpoint, mode))
    yield endpoint_line
    yield report.run(
        "closed routes", partial(routes.check_closed, endpoint, mode, options["auth"], lists.folders(project))
    )
    yield report.run("open routes", lambda: routes.check_open(endpoint, mode, *_pages(url, stack, options)))
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


def _pages(url: str, stack: Stack | None, options: Options) -> tuple[str, Sequence[str]]:
    """Return the URL that the metadata must name, and the origins whose pages may call."""
    if stack is None:
        return url, options["origins"]
    allowed = [origin for text in stack.variables("MCP_ALLOWED_ORIGINS") for origin in text.split(",")]
    resource = stack.variables("MCP_RESOURCE_URL") or {url}
    return min(resource), list(options["origins"]) or sorted({origin.strip() for origin in allowed} - {""})


def _conversations(endpoint: server.Server, project: lists.Catalog, options: Options) -> dict[str, Callable[[], str]]:
    tools: Mapping[str, str] = project.get("functions", {}).get("tools", {})
    tasks = [name for name, folder in tools.items() if folder in project.get("tasks", ())]
    calls = Calls(endpoint, options["named_tools"], options["answers"], tasks, options["patience"])
    return {
        "lists": partial(lists.check_lists, endpoint, project),
        "functions": partial(lists.check_functions, endpoint, project),
        "conversation": calls.check_conversation,
        "task": calls.check_task,
    }
