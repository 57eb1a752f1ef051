"""A stack that is deployed, and the conversations' view of it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mcp_functions_harness.verification.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.deployed.account import Account
    from tests.deployed.project import Project

TRANSITION_SECONDS = 300


@dataclass(frozen=True)
class Stack:
    """A stack of an account.

    Attributes:
        name: of the stack.
        project: from which it was deployed.
        url: of the MCP endpoint, on this machine; the requests are signed for the caller.
    """

    name: str
    project: Project
    url: str

    @property
    def account(self) -> Account:
        """Where it is deployed."""
        return self.project.account

    def server(self, url: str = "") -> Server:
        """Make a client that shows each exchange."""
        return Server(url or self.url, timeout=60)

    @property
    def described(self) -> dict[str, Any]:
        """What CloudFormation says of it."""
        (found,) = self.account.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"]
        return dict(found)

    @property
    def outputs(self) -> dict[str, str]:
        return {one["OutputKey"]: one["OutputValue"] for one in self.described["Outputs"]}

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        """Logical id -> the resource."""
        pages = (
            self.account.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=self.name)
        )
        return {one["LogicalResourceId"]: one for page in pages for one in page["StackResourceSummaries"]}

    @cached_property
    def functions(self) -> list[str]:
        """The names of its functions."""
        kind = "AWS::Lambda::Function"
        return [one["PhysicalResourceId"] for one in self.resources.values() if one["ResourceType"] == kind]

    def forget(self) -> None:
        """End every process of every function: whatever is known then is known outside of them."""
        self.account.kill(*self.functions)

    def lines(self, **fields: str) -> list[dict[str, Any]]:
        """Return the JSON lines of the functions' log with these fields, oldest first."""
        group = self.resources["FunctionLogs"]["PhysicalResourceId"]
        pages = self.account.client("logs").get_paginator("filter_log_events").paginate(logGroupName=group)
        events = sorted((event for page in pages for event in page["events"]), key=lambda event: event["timestamp"])
        return [line for event in events if fields.items() <= (line := _object(event["message"])).items()]

    def line(self, seconds: float = 30, **fields: str) -> dict[str, Any]:
        """Wait for a line with these fields."""
        deadline = time.monotonic() + seconds
        while not (found := self.lines(**fields)):
            assert time.monotonic() < deadline, f"the log has no line with {fields}"
            time.sleep(0.2)
        return found[-1]


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def texts(result: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a tool's result."""
    for one in result["content"]:
        yield one["text"]
