"""A long computation, one step for each month. When a round's time ends, the next round continues from there."""

from calendar import month_name

from aws_lambda_powertools import Logger, Metrics

from mcp_functions import Progress, Step, serve, tool

logger, metrics = Logger(), Metrics(namespace="mcp-functions")


def count_tickets(year: int, month: int) -> int:
    """Simulate a query that takes seconds."""
    return (7 * year + 13 * month) % 90


@tool
def summarize_year(year: int, *, step: Step, progress: Progress) -> str:
    """Summarize a year of support tickets."""

    def count(month: int) -> int:
        tickets = count_tickets(year, month)
        metrics.add_metric(name="MonthsCounted", unit="Count", value=1)  # in a step: once, even if rounds are repeated
        progress(month, total=12, message=month_name[month])
        return tickets

    counts = {month_name[month]: step(f"month-{month}", count, month) for month in range(1, 13)}
    logger.info("summarized", extra={"months": len(counts)})  # neither arguments nor results
    busiest = max(counts, key=lambda name: counts[name])
    return f"{sum(counts.values())} tickets in {year}, most of them in {busiest}: {counts[busiest]}."


handler = metrics.log_metrics(serve(summarize_year, logger=logger))
