"""Applies the metric filters of template.yaml to log lines, as CloudWatch does.

    { ($.outcome = "fail*" && $.record.status != "success") || $.cold IS TRUE && $.reason NOT EXISTS }

Of CloudWatch's JSON patterns, only these terms are read, and `>`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_functions_harness import template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).parents[2]
TERM = re.compile(r'\$\.([\w.]+) (?:(=|!=) "([^"]*)"|(>) (\d+)|(IS TRUE)|(NOT EXISTS))')
TOKEN = re.compile(r'\s*(\(|\)|&&|\|\||(?:"[^"]*"|[^()&|"])+)')
MISSING = object()
FUNCTION_LOGS, ACCESS_LOGS = "FunctionLogs", "AccessLogs"


def matches(pattern: str, line: Mapping[str, Any]) -> bool:
    """Tell whether a filter counts a line."""
    body = pattern.strip()
    assert body.startswith("{"), pattern
    assert body.endswith("}"), pattern
    tokens = TOKEN.findall(body[1:-1].strip())
    assert "".join(tokens).replace(" ", "") == re.sub(r"\s", "", body[1:-1]), pattern
    value = _any(tokens, line)
    assert not tokens, pattern
    return value


def _any(tokens: list[str], line: Mapping[str, Any]) -> bool:
    """Read alternatives, and remove their tokens. Each term is read, also where an earlier one decides."""
    values = [_all(tokens, line)]
    while tokens and tokens[0] == "||":
        del tokens[0]
        values.append(_all(tokens, line))
    return any(values)


def _all(tokens: list[str], line: Mapping[str, Any]) -> bool:
    values = [_one(tokens, line)]
    while tokens and tokens[0] == "&&":
        del tokens[0]
        values.append(_one(tokens, line))
    return all(values)


def _one(tokens: list[str], line: Mapping[str, Any]) -> bool:
    first = tokens.pop(0)
    if first != "(":
        return _holds(first.strip(), line)
    value = _any(tokens, line)
    assert tokens.pop(0) == ")"
    return value


def _holds(term: str, line: Mapping[str, Any]) -> bool:
    parsed = TERM.fullmatch(term)
    assert parsed, f"not in the subset that is read here: {term}"
    name, equality, text, is_more, number, is_true, is_absent = parsed.groups()
    value = field(line, name)
    if equality:
        # CloudWatch compares only fields that exist, also with `!=`
        return isinstance(value, str) and fnmatchcase(value, text) is (equality == "=")
    if is_more:
        return isinstance(value, int | float) and not isinstance(value, bool) and value > int(number)
    assert is_true or is_absent
    return value is True if is_true else value is MISSING


def field(line: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - any JSON
    """Return a field of a line, such as `record.status`; MISSING if there is none."""
    value: Any = line
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return MISSING
        value = value[part]
    return value


def access_line(**usual: str) -> str:
    """Write a line of the API's access log: the format with these values; a field without a value is `-`."""
    api = template.read(ROOT / "template.yaml")["Resources"]["HttpApi"]["Properties"]
    return re.sub(r"\$context\.([\w.]+)", lambda found: usual.get(found[1], "-"), api["AccessLogSettings"]["Format"])


def alarm_metrics() -> set[str]:
    """Return the metrics of all alarms: an alarm names its metric, or has an expression of Metrics Insights."""
    resources = template.read(ROOT / "template.yaml")["Resources"].values()
    alarms = [one["Properties"] for one in resources if one["Type"] == "AWS::CloudWatch::Alarm"]
    named = {alarm["MetricName"] for alarm in alarms if "MetricName" in alarm}
    parts = [each for alarm in alarms for each in alarm.get("Metrics", ())]
    named |= {part["MetricStat"]["Metric"]["MetricName"] for part in parts if "MetricStat" in part}
    expressions = [str(part["Expression"]["Fn::Sub"]) for part in parts if "Expression" in part]
    return named | {metric for each in expressions for metric in re.findall(r"SUM\((\w+)\)", each)}


def count_metrics(lines: Iterable[Mapping[str, Any]], log: str = FUNCTION_LOGS) -> dict[str, float]:
    """Return what the filters of a log count in these lines: metric -> sum, without empty sums."""
    all_lines = list(lines)
    sums: dict[str, float] = {}
    for resource in template.read(ROOT / "template.yaml")["Resources"].values():
        properties = resource["Properties"]
        if resource["Type"] == "AWS::Logs::MetricFilter" and properties["LogGroupName"] == {"Ref": log}:
            (metric,) = properties["MetricTransformations"]
            name = metric["MetricName"]
            for line in all_lines:
                if matches(properties["FilterPattern"], line) and _has_dimensions(metric, line):
                    sums[name] = sums.get(name, 0) + _counted_value(metric, line)
    return sums


def _has_dimensions(metric: Mapping[str, Any], line: Mapping[str, Any]) -> bool:
    """Tell whether a line has every field that is a dimension; CloudWatch counts no other line."""
    return all(dimension["Value"].removeprefix("$.") in line for dimension in metric.get("Dimensions", ()))


def _counted_value(metric: Mapping[str, Any], line: Mapping[str, Any]) -> float:
    """Return a fixed number, or the value of the line's field that the metric names as in `$.count`."""
    value = str(metric["MetricValue"])
    if value.startswith("$."):
        return float(line[value.removeprefix("$.")])
    return float(value)
