"""Checks a stack on AWS with the user's credentials: its functions, its logs and its alarms.

Without these checks, an operator would notice only in trouble that a log or an alarm is missing.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from mcp_functions_harness.problems import Problem, first_line
from mcp_functions_harness.verification.report import Failed, Skipped, comma_list

ENDPOINT = "Endpoint"  # the output of template.yaml with the server's URL
FUNCTION = "AWS::Lambda::Function"
LOG_GROUP = "AWS::Logs::LogGroup"
ALARMS = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
COMPLETE = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "IMPORT_COMPLETE")
POLL_SECONDS = 2.0  # pause between two looks at a log
NAMESPACE = "mcp-functions/"  # begins that of each metric that the template's filters count
CLOCK_SECONDS = 60  # how much this machine's clock may be fast
MAX_NAMES = 100  # DescribeAlarms takes no more names


class Stack:
    """One stack of CloudFormation."""

    def __init__(self, name: str, session: boto3.Session) -> None:
        """Read the stack.

        Raises:
            Problem: there is no such stack, it has no endpoint, or the user may not read it.
        """
        self._session: Any = session  # boto3's clients are typed by other packages
        try:
            cloudformation = self._session.client("cloudformation")
            (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
            pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
            resources = [resource for page in pages for resource in page["StackResourceSummaries"]]
        except (BotoCoreError, ClientError) as error:
            raise Problem(f"the stack {name} cannot be read: {first_line(error)}") from error
        self._status = str(stack["StackStatus"])
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}
        if ENDPOINT not in outputs:
            raise Problem(f"the stack {name} has no output {ENDPOINT}; its status is {self._status}")
        self.endpoint = str(outputs[ENDPOINT])
        self._names = defaultdict[str, list[str]](list)  # the physical ids of resources, by type
        for resource in resources:
            self._names[resource["ResourceType"]].append(resource.get("PhysicalResourceId", ""))

    @cached_property
    def _functions(self) -> Mapping[str, Mapping[str, Any]]:
        """The configuration of each function, by its name."""
        client = self._session.client("lambda")
        return {name: client.get_function_configuration(FunctionName=name) for name in self._names[FUNCTION]}

    def variables(self, name: str) -> set[str]:
        """Return the values of an environment variable in all functions, without empty ones."""
        environments = [function.get("Environment", {}) for function in self._functions.values()]
        return {environment.get("Variables", {}).get(name, "") for environment in environments} - {""}

    def check(self, mode: str) -> str:
        """Check that the stack is complete, and that MCP_AUTH_MODE of its functions is the mode of the API."""
        if self._status not in COMPLETE:
            raise Failed(f"its status is {self._status}")
        broken = [name for name, function in self._functions.items() if function.get("State") == "Failed"]
        if broken:
            raise Failed(f"Lambda cannot run {comma_list(broken)}")
        believed = self.variables("MCP_AUTH_MODE")
        if believed and believed != {mode}:
            raise Failed(f"the API enforces {mode}, and functions believe {comma_list(sorted(believed))}")
        return f"{self._status}, {len(self._functions)} functions believe mode {mode}"

    def check_logs(self, request_id: str, began: float, seconds: float) -> str:
        """Check that each function has its log group, and that a request of this run has its line in one.

        The id is API Gateway's, or "". The run `began` in unix seconds. The line may take some `seconds`.
        """
        logs: Any = self._session.client("logs")
        configured = {name: function.get("LoggingConfig", {}) for name, function in self._functions.items()}
        groups = sorted({config.get("LogGroup") or f"/aws/lambda/{name}" for name, config in configured.items()})
        needed = sorted({*groups, *self._names[LOG_GROUP]})
        prefixed = [logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"] for group in needed]
        _check_present("log group", needed, {group["logGroupName"] for found in prefixed for group in found})
        if not request_id:
            return f"{comma_list(needed)}; no request of this run has a line"
        since = int((began - CLOCK_SECONDS) * 1000)  # unix milliseconds
        deadline = time.time() + seconds
        while not any(_has_line(logs, group, request_id, since) for group in groups):
            if time.time() >= deadline:
                waited = f"{seconds:g} s (--seconds)"
                raise Failed(f"no line of request {request_id} after {waited} in {comma_list(groups)}")
            time.sleep(POLL_SECONDS)
        return f"{comma_list(needed)}, with the line of request {request_id}"

    def check_alarms(self) -> str:
        """Check that alarms exist, have an action, have metrics that are counted, and are not raised."""
        names = [name for resource_type in ALARMS for name in self._names[resource_type]]
        if not names:
            raise Skipped("the stack has none: mcp-functions add alarms, and set AlarmTopic")
        response = self._session.client("cloudwatch").describe_alarms(
            AlarmNames=names[:MAX_NAMES], AlarmTypes=["MetricAlarm", "CompositeAlarm"]
        )
        alarms = [*response["MetricAlarms"], *response["CompositeAlarms"]]
        _check_present("alarm", names, {alarm["AlarmName"] for alarm in alarms})
        _check_present("metric filter that counts", _needed_metrics(alarms), self._counted_metrics())
        silent = [alarm["AlarmName"] for alarm in alarms if not (alarm["ActionsEnabled"] and alarm["AlarmActions"])]
        if silent:
            raise Failed(f"no action follows {comma_list(silent)}")
        raised = [alarm["AlarmName"] for alarm in alarms if alarm["StateValue"] == "ALARM"]
        if raised:
            raise Failed(f"raised: {comma_list(raised)}")
        return f"{len(names)} alarms, none of them raised"

    def _counted_metrics(self) -> set[str]:
        """Return the metrics that the metric filters of the stack's log groups count."""
        paginator = self._session.client("logs").get_paginator("describe_metric_filters")
        pages = [page for group in self._names[LOG_GROUP] for page in paginator.paginate(logGroupName=group)]
        filters = [metric_filter for page in pages for metric_filter in page["metricFilters"]]
        return {metric["metricName"] for found in filters for metric in found["metricTransformations"]}


def _has_line(logs: Any, group: str, request_id: str, since: int) -> bool:  # noqa: ANN401
    pages = logs.get_paginator("filter_log_events").paginate(
        logGroupName=group, filterPattern=f'"{request_id}"', startTime=since
    )
    return any(page["events"] for page in pages)


def _needed_metrics(alarms: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the metrics of alarms that metric filters must count."""
    metrics: list[Mapping[str, Any]] = []
    for alarm in alarms:
        metrics.append(alarm)  # an alarm of one metric has the metric's name itself
        metrics += [part["MetricStat"]["Metric"] for part in alarm.get("Metrics", ()) if "MetricStat" in part]
    return sorted({metric["MetricName"] for metric in metrics if metric.get("Namespace", "").startswith(NAMESPACE)})


def _check_present(kind: str, names: list[str], present: set[str]) -> None:
    missing = [name for name in names if name not in present]
    if missing:
        raise Failed(f"there is no {kind} {comma_list(missing)}")
