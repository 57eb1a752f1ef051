"""The page on costs: its parameters are those of template.yaml, and its limits are those of the code."""

from __future__ import annotations

import re

from mcp_functions.settings import Settings
from mcp_functions.store.sealed_table import LARGE_READS, LARGE_READS_PER_SECOND, LARGE_ROW, MAX_CLIENT_BYTES
from mcp_functions_harness import template
from mcp_functions_harness.auth import set_auth
from tests.benchmarks import cost
from tests.docs.pages import ROOT, Page
from tests.support.request_costs import MOST

PAGE = Page.named("costs.md")


def row(of: str) -> str:
    """Return what the table of limits says of something."""
    (limit,) = re.findall(rf"^\| {of} \| (.*) \|$", PAGE.text, re.MULTILINE)
    return str(limit)


def test_the_parameters_of_the_page_have_the_defaults_of_the_template() -> None:
    with_sign_in = set_auth((ROOT / "template.yaml").read_text(encoding="utf-8"), "oauth")
    written = template.parse(with_sign_in)["Parameters"]
    matches = re.findall(r"^\| `(\w+)`(?: \([^|]*\))? \| (.*?) \|", PAGE.text, re.MULTILINE)
    defaults = {name: "" if default == "empty" else default.strip("`") for name, default in matches}
    assert defaults == {name: str(written[name]["Default"]) for name in defaults}


def test_a_parameter_whose_description_names_a_price_is_on_the_page() -> None:
    with_sign_in = set_auth((ROOT / "template.yaml").read_text(encoding="utf-8"), "oauth")
    written = template.parse(with_sign_in)["Parameters"]
    priced = {name for name, said in written.items() if re.search(r"USD|[Cc]osts", said.get("Description", ""))}
    assert [name for name in sorted(priced) if f"| `{name}` " not in PAGE.text] == []


def test_the_sums_of_the_worst_case_are_correct() -> None:
    section = PAGE.text.partition("## The worst case\n")[2].partition("\n## ")[0]
    sums = re.findall(r"^\| [^|]+ \| ([^|]* x [^|]*) \| ([\d. ]+) \|$", section, re.MULTILINE)
    assert len(sums) == 6
    assert [(how, f"{cost.reckoned(how):.2f}") for how, _usd in sums] == [
        (how, usd.replace(" ", "")) for how, usd in sums
    ]


def test_the_worst_case_uses_the_defaults_of_the_template() -> None:
    written = template.read(ROOT / "template.yaml")
    requests = written["Parameters"]["RequestsPerSecond"]["Default"] * 30 * 24 * 3600
    assert PAGE.text.count(f"{requests:,}".replace(",", " ")) == 4
    assert f"= {requests:,} requests" in PAGE.text
    assert written["Globals"]["Function"]["MemorySize"] == 0.5 * 1024
    assert requests == cost.REQUESTS_A_MONTH, "of the row that the bench writes"


def test_the_worst_case_of_one_request_is_what_was_counted() -> None:
    assert cost.request_table() in PAGE.text, "make bench BENCH_ARGS=--again writes it"
    assert cost.dearest_request_row() in PAGE.text
    assert "at most five calls to KMS and three invocations" in " ".join(PAGE.text.split())
    assert (max(one.kms for one in MOST.values()), max(one.invocations for one in MOST.values())) == (5, 3)


def test_the_costs_page_states_the_limits_of_the_settings() -> None:
    settings = Settings({"MCP_STACK": "shop"})
    assert row("a request body") == f"{settings.max_body_bytes // 1024**2} MiB"
    assert row("open tasks").startswith(f"{settings.max_open_tasks} ")
    assert row("what a client has stored.*").startswith(f"{MAX_CLIENT_BYTES // 1000} KB")
    large = f"reads of items of more than {LARGE_ROW // 1000} KB"
    assert row(large).startswith(f"{LARGE_READS} at once for each caller and container, then {LARGE_READS_PER_SECOND} ")
