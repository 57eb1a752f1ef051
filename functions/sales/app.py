"""An app of the author's: the host shows the tool's result as bars, and the app calls the tool for another year."""

from pathlib import Path
from typing import TypedDict

from mcp_functions import resource, serve, tool

CHART = "ui://sales/chart"
PAGE = Path(__file__).with_name("chart.html").read_text(encoding="utf-8")


class Sales(TypedDict):
    year: int
    quarters: list[int]


@resource(CHART, mime_type="text/html;profile=mcp-app", meta={"ui": {"prefersBorder": True}})
def sales_chart() -> str:
    """Show the sales of a year as bars."""
    return PAGE


@tool(app=CHART, annotations={"readOnlyHint": True})
def sales(year: int) -> Sales:
    """Return what was sold in each quarter of a year."""
    return {"year": year, "quarters": [(year * quarter) % 97 for quarter in range(1, 5)]}


handler = serve(sales, sales_chart)
