"""An app of the author's: the host shows the tool's result as bars, and the app calls the tool for another year."""

from typing import TypedDict

from mcp_functions import resource, serve, tool

CHART = "ui://sales/chart"
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Sales</title>
<style>
  body { margin: 0; padding: 12px; font: 14px system-ui, sans-serif; color-scheme: light dark; }
  .bar { background: #4477aa; height: 14px; }
</style>
<h1></h1>
<main></main>
<button type="button">The year before</button>
<script>
const waiting = new Map();
let year = 0;

function post(message) { window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*"); }

function request(method, params) {
  const id = waiting.size + 1;
  post({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

function draw({ structuredContent }) {
  year = structuredContent.year;
  document.querySelector("h1").textContent = `Sales of ${year}`;
  document.querySelector("main").replaceChildren(...structuredContent.quarters.map((sold, index) => {
    const row = document.createElement("p");
    const bar = document.createElement("div");
    row.textContent = `Quarter ${index + 1}: ${sold}`;
    bar.className = "bar";
    bar.style.width = `${sold}%`;
    row.append(bar);
    return row;
  }));
}

window.addEventListener("message", ({ source, data }) => {
  if (source !== window.parent) return;
  if (data.method === "ui/notifications/tool-result") draw(data.params);
  if (!data.method) waiting.get(data.id)?.(data.result);
});

document.querySelector("button").addEventListener("click", async () => {
  draw(await request("tools/call", { name: "sales", arguments: { year: year - 1 } }));
});

const appInfo = { name: "sales", version: "1" };
request("ui/initialize", { appInfo, appCapabilities: {}, protocolVersion: "2026-01-26" }).then(() => {
  post({ method: "ui/notifications/initialized", params: {} });
});
</script>
</html>
"""


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
