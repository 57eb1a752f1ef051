"""Reads a stack on AWS with the user's credentials: its outputs, its resources and its functions."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from mcp_functions.local.problems import first_line, stop
from mcp_functions.local.verification.report import Failed, comma_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    import boto3

ENDPOINT = "Endpoint"  # the output of template.yaml with the server's URL
FUNCTION = "AWS::Lambda::Function"
COMPLETE = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "IMPORT_COMPLETE")


class Stack:
    """One stack of CloudFormation."""

    def __init__(self, name: str, session: boto3.Session) -> None:
        """Read the stack.

        Raises:
            Problem: there is no such stack, it has no endpoint, or the user may not read it.
        """
        self.session: Any = session  # boto3's clients are typed by other packages
        try:
            cloudformation = self.session.client("cloudformation")
            (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
            pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
            resources = [resource for page in pages for resource in page["StackResourceSummaries"]]
        except (BotoCoreError, ClientError) as error:
            stop(f"the stack {name} cannot be read: {first_line(error)}", after=error)
        self.status = str(stack["StackStatus"])
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}
        if ENDPOINT not in outputs:
            stop(f"the stack {name} has no output {ENDPOINT}; its status is {self.status}")
        self.endpoint = str(outputs[ENDPOINT])
        self._resources = defaultdict[str, list[str]](list)
        for resource in resources:
            self._resources[resource["ResourceType"]].append(resource.get("PhysicalResourceId", ""))

    def ids(self, kind: str) -> list[str]:
        """Return the physical ids (for example, names) of the resources of a type, such as AWS::Lambda::Function."""
        return self._resources[kind]

    @cached_property
    def functions(self) -> Mapping[str, Mapping[str, Any]]:
        """The configuration of each function, by its physical name."""
        client = self.session.client("lambda")
        return {name: client.get_function_configuration(FunctionName=name) for name in self.ids(FUNCTION)}

    def variables(self, name: str) -> set[str]:
        """Return the values of an environment variable in all functions, without empty ones."""
        values = {_variables(function).get(name, "") for function in self.functions.values()}
        return values - {""}

    def check(self, mode: str) -> str:
        """Check that the stack is complete, and that its functions are set to the mode that the API enforces.

        Raises:
            Failed: a deployment has not ended well, or MCP_AUTH_MODE of a function is another mode.
        """
        if self.status not in COMPLETE:
            raise Failed(message=f"its status is {self.status}")
        broken = [name for name, function in self.functions.items() if function.get("State") == "Failed"]
        if broken:
            raise Failed(message=f"Lambda cannot run {comma_list(broken)}")
        believed = self.variables("MCP_AUTH_MODE")
        if believed and believed != {mode}:
            raise Failed(message=f"the API enforces {mode}, and functions believe {comma_list(sorted(believed))}")
        return f"{self.status}, {len(self.functions)} functions believe mode {mode}"


def _variables(function: Mapping[str, Any]) -> dict[str, str]:
    variables: dict[str, str] = function.get("Environment", {}).get("Variables", {})
    return variables
