"""`mcp-functions verify`: says whether a server that was just deployed works. It changes nothing on AWS."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import boto3
from botocore.exceptions import BotoCoreError

from mcp_functions.local import catalog
from mcp_functions.local.problems import Problem, first_line
from mcp_functions.local.verification import lists, monitoring, report, routes, server
from mcp_functions.local.verification.calls import Calls
from mcp_functions.local.verification.report import Patience
from mcp_functions.local.verification.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mcp_functions.local.verification.report import Line

__all__ = ["Options", "Patience", "verify"]

SCHEMES = ("http://", "https://")
BY_URL = "needs AWS: name the stack instead of its URL"


class Choices(TypedDict):
    """The options that are words of the command line as they are."""

    functions: Path
    token: str | None
    auth: str | None
    origins: Sequence[str]
    region: str | None
    profile: str | None


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the user."""

    functions: Path = Path("functions")  # the folder with the project's functions and catalog
    named: Sequence[tuple[str, Mapping[str, Any]]] = ()  # tools that may be called, with their arguments
    # by a question's key: the content of its form, "decline" or "cancel"
    answers: Mapping[str, Any] = field(default_factory=dict)
    token: str | None = None  # an access token, in the modes jwt and oauth
    auth: str | None = None  # the mode that is meant
    origins: Sequence[str] = ()  # whose pages may call
    region: str | None = None  # of AWS; None: as the AWS CLI decides
    profile: str | None = None  # of the AWS configuration
    patience: Patience = field(default_factory=Patience)  # for one task, and for a line in the log


def verify(target: str, options: Options) -> Iterator[Line]:
    """Check a server; yield one line per check.

    Args:
        target: the URL of its endpoint, or the name of its stack.
        options: of the user.

    Raises:
        Problem: the stack cannot be read.
    """
    session = _session(options)
    stack = None if target.startswith(SCHEMES) else Stack(target, session)
    url = stack.endpoint if stack else target.rstrip("/")
    return _lines(url, stack, session, options)


def _session(options: Options) -> boto3.Session:
    try:
        return boto3.Session(profile_name=options.profile, region_name=options.region)
    except BotoCoreError as error:
        raise Problem(first_line(error)) from error


def _lines(url: str, stack: Stack | None, session: boto3.Session, options: Options) -> Iterator[Line]:
    began = options.patience.now()
    asked = server.Server(url, lambda _url, request: request)
    try:
        mode = server.find_mode(asked)
    except report.Failed as failed:
        yield report.Line("FAILED", "endpoint", str(failed))
        return
    asked.authorize = server.authorization(mode, url, options.token, session)
    project = catalog.read(options.functions)
    endpoint = report.run("endpoint", partial(routes.check_endpoint, asked, mode))
    yield endpoint
    yield report.run("closed routes", partial(routes.check_closed, asked, mode, options.auth, lists.folders(project)))
    yield report.run("open routes", lambda: routes.check_open(asked, mode, *_pages(url, stack, options)))
    for name, check in _conversations(asked, project, options):
        yield report.run(name, check) if endpoint.outcome == "ok" else _after(endpoint, name)
    if stack is None:
        yield from (report.Line("skipped", name, BY_URL) for name in ("stack", "logs", "alarms"))
        return
    watch = monitoring.Monitoring(stack, options.patience)
    yield report.run("stack", partial(stack.check, mode))
    yield report.run("logs", partial(watch.check_logs, asked.request_id, began))
    yield report.run("alarms", watch.check_alarms)


def _pages(url: str, stack: Stack | None, options: Options) -> tuple[str, Sequence[str]]:
    """Return the URL that the metadata must name, and the origins whose pages may call."""
    if stack is None:
        return url, options.origins
    allowed = [origin for text in stack.variables("MCP_ALLOWED_ORIGINS") for origin in text.split(",")]
    resource = stack.variables("MCP_RESOURCE_URL") or {url}
    return min(resource), list(options.origins) or sorted({origin.strip() for origin in allowed} - {""})


def _conversations(
    asked: server.Server, project: lists.Catalog, options: Options
) -> Iterator[tuple[str, Callable[[], str]]]:
    tools: Mapping[str, str] = project.get("functions", {}).get("tools", {})
    tasks = [name for name, folder in tools.items() if folder in project.get("tasks", ())]
    calls = Calls(asked, options.named, options.answers, tasks, options.patience)
    yield "lists", partial(lists.check_lists, asked, project)
    yield "functions", partial(lists.check_functions, asked, project)
    yield "conversation", calls.check_conversation
    yield "task", calls.check_task


def _after(endpoint: Line, name: str) -> Line:
    why = endpoint.text if endpoint.outcome == "skipped" else "the endpoint refuses your credentials"
    return report.Line("skipped", name, why)
