"""Lines and metrics through Powertools for AWS Lambda: its Logger formats lines, its EMF provider writes metrics.

Not its Tracer, which costs a quarter of a second, and nothing of its singletons: an author's own Logger and Metrics
stay the author's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from mcp_functions.observing import lines
from mcp_functions.observing.measures import measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_functions.observing.notes import Notes


def write_lines(service: str, level: int) -> None:
    """Have the package's lines written by a Powertools Logger.

    Args:
        service: what the lines say they come from.
        level: of logging.

    """
    # Powertools calls the Python logger what it calls the service: so the service that is shown is set apart.
    # Lambda takes a line's own time and level only if the time is RFC 3339.
    logger = Logger(service=lines.NAME, level=level, use_rfc3339=True, location=None)
    logger.append_keys(service=service, logger=lines.NAME)
    lines.log.setLevel(level)  # else Lambda's level would count for more than a stricter one of Powertools


def measuring(service: str, *, endpoint: bool) -> Callable[[Notes], None]:
    """Make an observer that writes the line, and then the metrics.

    Args:
        service: the dimension that all metrics have.
        endpoint: whether this is the front door.

    """

    def tell(notes: Notes) -> None:
        lines.tell(notes)
        for dimensions, measures in measured(notes, endpoint=endpoint):
            # One of our own each time: `Metrics` keeps what it counts in its class, where an author's would meet ours.
            provider = AmazonCloudWatchEMFProvider(service=service)
            for name, value in dimensions.items():
                provider.add_dimension(name, value)
            for name, (unit, amount) in measures.items():
                provider.add_metric(name, unit, amount)
            provider.flush_metrics()

    return tell
