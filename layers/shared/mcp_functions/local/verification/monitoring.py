"""Checks the logs and the alarms of a stack.

    check_logs     each function has its log group, and a request of this run has its line there
    check_alarms   each alarm has an action, has a metric that is counted, and is not raised

Without this check, an operator would notice only in trouble that a log or an alarm is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_functions.local.verification.report import Failed, Skipped, comma_list

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from mcp_functions.local.verification.report import Patience
    from mcp_functions.local.verification.stack import Stack

GROUP = "AWS::Logs::LogGroup"
ALARMS = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
POLL_SECONDS = 2.0  # pause between two looks at a log
NAMESPACE = "mcp-functions/"  # what the namespaces of the metrics begin with that the template's filters count
CLOCK_SECONDS = 60  # how much this machine's clock may be fast: a line may be that much older than `began`
MAX_NAMES = 100  # DescribeAlarms takes no more names


class Monitoring:
    """The log groups and alarms of one stack."""

    def __init__(self, stack: Stack, patience: Patience) -> None:
        """Make the clients of CloudWatch; nothing is read yet."""
        self._stack = stack
        self._patience = patience
        self._logs: Any = stack.session.client("logs")
        self._cloudwatch: Any = stack.session.client("cloudwatch")

    def check_logs(self, request_id: str, began: float) -> str:
        """Check that the log groups exist, and that a request of this run has its line.

        Args:
            request_id: API Gateway's id of that request; "" if there is none.
            began: when this run began, in unix seconds.

        Raises:
            Failed: a group or the line is missing.
        """
        groups = sorted({_log_group(name, function) for name, function in self._stack.functions.items()})
        needed = sorted({*groups, *self._stack.ids(GROUP)})
        _check_present("log group", needed, [group for group in needed if self._exists(group)])
        if not request_id:
            return f"{comma_list(needed)}; no request of this run has a line"
        since = int((began - CLOCK_SECONDS) * 1000)  # unix milliseconds
        deadline = self._patience.now() + self._patience.seconds
        while not any(self._has_line(group, request_id, since) for group in groups):
            if self._patience.now() >= deadline:
                waited = f"{self._patience.seconds:g} s (--seconds)"
                raise Failed(message=f"no line of request {request_id} after {waited} in {comma_list(groups)}")
            self._patience.sleep(POLL_SECONDS)
        return f"{comma_list(needed)}, with the line of request {request_id}"

    def check_alarms(self) -> str:
        """Check that alarms exist, have an action, count their metrics, and are not raised.

        Raises:
            Failed: an alarm, its metric or its action is missing, or an alarm is raised.
            Skipped: the stack has no alarms.
        """
        names = [name for kind in ALARMS for name in self._stack.ids(kind)]
        if not names:
            raise Skipped(message="the stack has none; the parameter AlarmTopic makes them")
        alarms = self._alarms(names)
        _check_present("alarm", names, list(alarms))
        _check_present("metric filter that counts", _needed_metrics(alarms.values()), self._counted_metrics())
        silent = [name for name, alarm in alarms.items() if not _has_action(alarm)]
        if silent:
            raise Failed(message=f"no action follows {comma_list(silent)}")
        raised = [name for name, alarm in alarms.items() if alarm["StateValue"] == "ALARM"]
        if raised:
            raise Failed(message=f"raised: {comma_list(raised)}")
        return f"{len(names)} alarms, none of them raised"

    def _exists(self, group: str) -> bool:
        log_groups = self._logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        return group in {log_group["logGroupName"] for log_group in log_groups}

    def _has_line(self, group: str, request_id: str, since: int) -> bool:
        pages = self._logs.get_paginator("filter_log_events").paginate(
            logGroupName=group, filterPattern=f'"{request_id}"', startTime=since
        )
        return any(page["events"] for page in pages)

    def _counted_metrics(self) -> list[str]:
        """Return the metrics that the metric filters of the stack's log groups count."""
        paginator = self._logs.get_paginator("describe_metric_filters")
        metrics: list[str] = []
        for group in self._stack.ids(GROUP):
            for page in paginator.paginate(logGroupName=group):
                for metric_filter in page["metricFilters"]:
                    metrics += [metric["metricName"] for metric in metric_filter["metricTransformations"]]
        return metrics

    def _alarms(self, names: list[str]) -> dict[str, Mapping[str, Any]]:
        kinds = ["MetricAlarm", "CompositeAlarm"]
        response = self._cloudwatch.describe_alarms(AlarmNames=names[:MAX_NAMES], AlarmTypes=kinds)
        return {alarm["AlarmName"]: alarm for alarm in response["MetricAlarms"] + response["CompositeAlarms"]}


def _log_group(name: str, function: Mapping[str, Any]) -> str:
    """Return the log group of a function, given its name and its configuration at Lambda."""
    return str(function.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{name}")


def _needed_metrics(alarms: Collection[Mapping[str, Any]]) -> list[str]:
    """Return the metrics of alarms that metric filters must count."""
    metrics: list[Mapping[str, Any]] = []
    for alarm in alarms:
        metrics.append(alarm)  # an alarm of one metric has the metric's name itself
        metrics += [part["MetricStat"]["Metric"] for part in alarm.get("Metrics", ()) if "MetricStat" in part]
    return sorted({metric["MetricName"] for metric in metrics if metric.get("Namespace", "").startswith(NAMESPACE)})


def _has_action(alarm: Mapping[str, Any]) -> bool:
    return bool(alarm["ActionsEnabled"] and alarm["AlarmActions"])


def _check_present(kind: str, names: list[str], present: list[str]) -> None:
    missing = [name for name in names if name not in present]
    if missing:
        raise Failed(message=f"there is no {kind} {comma_list(missing)}")
