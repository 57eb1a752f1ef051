"""A long audit, as a task: it runs without a waiting client, asks in the middle, and survives the death of a worker."""

import time
from calendar import month_name

from mcp_functions import Elicit, Progress, Step, serve, tool

SECONDS = 0.4  # for the books of a month


def difference(year: int, month: int) -> int:
    """Simulate an audit of the books of a month; return the difference in cents."""
    time.sleep(SECONDS)
    return (31 * year + 17 * month) % 7


@tool(task="required")
def audit_year(year: int, *, step: Step, elicit: Elicit, progress: Progress) -> str:
    """Audit the books of a year."""
    total = 0
    for month in range(1, 13):
        progress(month, total=12, message=f"auditing {month_name[month]}")
        total += step(f"month-{month}", difference, year, month)
        if month_name[month] == "June" and total:
            asked = f"The first half of {year} differs by {total} cents. Write that off?"
            total = 0 if elicit("write_off", asked, bool) else total
    return f"{year} is audited: {total} cents remain."


handler = serve(audit_year)
