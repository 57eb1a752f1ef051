"""Lines and metrics in the form in which Powertools for AWS Lambda writes them, all of a request in one write.

Nothing of Powertools is imported for it: its Logger and its EMF provider took six times as long for each request as its
answer, and 40 ms of each cold start. A test holds what stands here against what they write.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mcp_functions.observing import lines
from mcp_functions.observing.measures import measured
from mcp_functions.observing.notes import TRACED, fields
from mcp_functions.writer import in_ascii

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcp_functions.observing.measures import Measures
    from mcp_functions.observing.notes import Notes


class Lines(logging.Handler):
    """Writes what the package says besides the lines of requests: warnings, of a key or of a lease."""

    def __init__(self, service: str) -> None:
        """Remember what the lines say they come from."""
        super().__init__()
        self.service = service

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        _write([line(self.service, record.levelname, record.getMessage(), record.created, {})])


def observer(
    service: str, level: int, namespace: str, *, endpoint: bool, now: Callable[[], float] = time.time
) -> Callable[[Notes], None]:
    """Make who writes the line of a request, and its metrics.

    Args:
        service: what lines say they come from, and the dimension that all metrics have.
        level: of logging, from which on lines are written here; 0: somebody else formats them.
        namespace: of the metrics; "": there are none.
        endpoint: whether this is the front door.
        now: the clock, unix seconds.

    """
    if level:
        _take_over(service, level)

    def tell(notes: Notes) -> None:
        at, written = now(), []
        told = lines.level_of(notes)
        if not level:
            lines.tell(notes)
        elif lines.log.isEnabledFor(told):
            traced = os.environ.get(TRACED, "")
            more = fields(notes, traced)
            written.append(line(service, logging.getLevelName(told), lines.message(notes), at, more, traced))
        if namespace:
            counted = measured(notes, endpoint=endpoint)
            written += [blob(namespace, service, names, found, at) for names, found in counted]
        if written:
            _write(written)

    return tell


def line(  # noqa: PLR0913, PLR0917 - what a line says
    service: str, level: str, message: str, at: float, more: Mapping[str, Any], traced: str | None = None
) -> str:
    """Write one line, as Powertools' Logger does.

    Args:
        service: what it comes from.
        level: its name.
        message: for people.
        at: unix seconds.
        more: keys beside these.
        traced: TRACED, if it was read already; "" if it is not set.

    """
    # Lambda takes a line's own time and level only if the time is RFC 3339.
    second, rest = divmod(at, 1)
    stamp = f"{_second(second)}.{int(rest * 1000):03}+00:00"
    written = {"level": level, "message": message, "timestamp": stamp, "service": service, "logger": lines.NAME, **more}
    if traced := os.environ.get(TRACED) if traced is None else traced:
        written["xray_trace_id"] = traced.partition(";")[0].removeprefix("Root=")
    return in_ascii(written)


def blob(namespace: str, service: str, dimensions: Mapping[str, str], measures: Measures, at: float) -> str:
    """Write metrics as CloudWatch's embedded metric format has them.

    Args:
        namespace: of the metrics.
        service: a dimension of all of them.
        dimensions: beside it.
        measures: metric to unit and value.
        at: unix seconds.

    """
    units = tuple([(name, unit) for name, (unit, _value) in measures.items()])
    about, named = _directive(namespace, (*dimensions.items(), ("service", service)), units)
    values = ",".join([f'"{name}":[{value}]' for name, (_unit, value) in measures.items()])
    return f'{{"_aws":{{"Timestamp":{int(at * 1000)},"CloudWatchMetrics":[{about}]}},{named},{values}}}'


@lru_cache(maxsize=1)
def _second(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


@lru_cache(maxsize=256)
def _directive(
    namespace: str, dimensions: tuple[tuple[str, str], ...], units: tuple[tuple[str, str], ...]
) -> tuple[str, str]:
    """Write what says how values are to be read, and the dimensions' own: names of the catalog, so they are few."""
    metrics = [{"Name": name, "Unit": unit} for name, unit in units]
    names = [name for name, _value in dimensions]
    directive = {"Namespace": namespace, "Dimensions": [names], "Metrics": metrics}
    return in_ascii(directive), in_ascii(dict(dimensions))[1:-1]


def _take_over(service: str, level: int) -> None:
    """Write the package's other lines here too, and nowhere else."""
    for handler in [handler for handler in lines.log.handlers if isinstance(handler, Lines)]:
        lines.log.removeHandler(handler)  # of another function in this process
    lines.log.addHandler(Lines(service))
    lines.log.propagate = False  # or Lambda's own formatter would write them a second time
    lines.log.setLevel(level)  # else Lambda's level would count for more than a stricter one of Powertools


def _write(written: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{text}\n" for text in written))
    sys.stdout.flush()
