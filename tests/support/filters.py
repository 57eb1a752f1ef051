"""The metric filters of template.yaml, read as CloudWatch reads them: of its JSON patterns, as much as they use.

Terms are `$.a = "x*"`, `$.a > 0`, `$.a IS TRUE` and `$.a NOT EXISTS`, joined by && or by ||.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_functions.local import template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).parents[2]
TERM = re.compile(r'\$\.(\w+) (?:(=) "([^"]*)"|(>) (\d+)|(IS TRUE)|(NOT EXISTS))')


def matches(pattern: str, line: Mapping[str, Any]) -> bool:
    """Say whether a filter counts a line."""
    body = pattern.strip()
    assert (body[0], body[-1]) == ("{", "}"), pattern
    either = [[_holds(term.strip(), line) for term in part.split("&&")] for part in body[1:-1].split("||")]
    return any(all(terms) for terms in either)


def _holds(term: str, line: Mapping[str, Any]) -> bool:
    read = TERM.fullmatch(term)
    assert read, f"not in the subset that is read here: {term}"
    name, is_text, text, is_more, number, is_true, is_absent = read.groups()
    value = line.get(name)
    if is_text:
        return isinstance(value, str) and fnmatchcase(value, text)
    if is_more:
        return isinstance(value, int | float) and not isinstance(value, bool) and value > int(number)
    assert is_true or is_absent
    return value is True if is_true else name not in line


def paging() -> set[str]:
    """Name the metrics that an alarm looks at, by name or in an expression of Metrics Insights."""
    resources = template.read(ROOT / "template.yaml")["Resources"].values()
    alarms = [one["Properties"] for one in resources if one["Type"] == "AWS::CloudWatch::Alarm"]
    named = {alarm["MetricName"] for alarm in alarms if "MetricName" in alarm}
    expressions = [each["Expression"]["Fn::Sub"] for alarm in alarms for each in alarm.get("Metrics", ())]
    return named | {metric for each in expressions for metric in re.findall(r"SUM\((\w+)\)", each)}


def counted(lines: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Say what the filters of the functions' log count: metric to sum, where there is one."""
    written, sums = list(lines), dict[str, float]()
    for one in template.read(ROOT / "template.yaml")["Resources"].values():
        properties = one["Properties"]
        if one["Type"] == "AWS::Logs::MetricFilter" and properties["LogGroupName"] == {"Ref": "FunctionLogs"}:
            (metric,) = properties["MetricTransformations"]
            name, value = metric["MetricName"], metric["MetricValue"]
            keys = [dimension["Value"].removeprefix("$.") for dimension in metric.get("Dimensions", ())]
            for line in written:
                if matches(properties["FilterPattern"], line) and all(key in line for key in keys):
                    sums[name] = sums.get(name, 0) + (line[value[2:]] if value.startswith("$.") else float(value))
    return sums
